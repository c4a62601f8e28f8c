// The ceiling of the benchmark: the service's runtime with the service's headers, and nothing else.
const headers = new Headers({
  'content-type': 'application/json',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
})
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  development: false,
  fetch: () =>
    new Response('{"name":"Monstera deliciosa","tag":"indoor"}', { status: 200, headers }),
})
console.log(`listening on http://127.0.0.1:${server.port}`)
