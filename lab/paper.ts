// scripts/bun lab/paper.ts: makes the plots of docs/benchmarks.md from
// docs/benchmarks/results.json, which is what `npm run bench -- --json` printed, and prints its
// tables.
import { readFileSync, writeFileSync } from 'node:fs'
import type { Results } from './parts.ts'
import { plots } from './plots.ts'
import { report } from './report.ts'

const folder = new URL('../docs/benchmarks/', import.meta.url)
const results = JSON.parse(readFileSync(new URL('results.json', folder), 'utf8')) as Results
for (const [name, svg] of Object.entries(await plots(results)))
  writeFileSync(new URL(`${name}.svg`, folder), svg)
console.log(report(results))
