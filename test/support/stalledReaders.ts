// A process that asks on many connections and reads nothing: `stalledReaders.ts URL COUNT TARGET
// TOKEN`. It says so once all have asked, and ends with its standard input.
import { connect } from 'node:net'

const [, , url = '', count, target, token] = process.argv
const { hostname, port } = new URL(url)
const request = `GET ${target} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: identity\r\nAuthorization: Bearer ${token}\r\n\r\n`

const asked = Array.from(
  { length: Number(count) },
  () =>
    new Promise<void>((resolve) => {
      const socket = connect(Number(port), hostname, () => socket.write(request, () => resolve()))
      socket.pause()
      socket.on('error', () => {})
    }),
)
await Promise.all(asked)
process.stdout.write('asked\n')
process.stdin.resume()
process.stdin.on('end', () => process.exit(0))
