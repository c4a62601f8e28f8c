// A process that lists plants without a pause, each time on a new connection: `readers.ts URL
// READERS`, with the token that is to be used from now on as a line of its standard input. It ends
// with its input.
import { connect } from 'node:net'
import { createInterface } from 'node:readline'

const { hostname, port } = new URL(process.argv[2] ?? '')
let request = ''

function read(): void {
  const socket = connect(Number(port), hostname, () => socket.write(request))
  socket.resume()
  socket.on('error', () => {})
  socket.on('close', read)
}

for await (const token of createInterface({ input: process.stdin })) {
  const first = request === ''
  request = `GET /plants HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n\r\n`
  if (first) for (let reader = 0; reader < Number(process.argv[3]); reader += 1) read()
}
process.exit(0)
