// Writes openapi.json from the declarations in src/contract.
import { writeFileSync } from 'node:fs'
import { openapiText } from '../src/contract/openapi.ts'

writeFileSync(new URL('../openapi.json', import.meta.url), `${openapiText('/', 2)}\n`)
