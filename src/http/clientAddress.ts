// The address of the client that a request comes from, though there may be proxies between.
import { type BlockList, isIP } from 'node:net'

/**
 * The client's address by X-Forwarded-For. Each proxy appends the address that it was asked from.
 * So the last one was written by our peer, the one before it by the proxy at that address, and so
 * on: the client is the first, from the right, that is no trusted proxy. What stands left of it may
 * be forged. What is no address ends the walk, and the proxy that passed it on counts as the client.
 */
export function clientAddress(
  peer: string,
  forwardedFor: string | null,
  trustedProxies: BlockList,
): string {
  let address = peer
  const hops = forwardedFor?.split(',') ?? []
  while (trustedProxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')) {
    const hop = hops.pop()?.trim() ?? ''
    // Some proxies append the port too.
    const [, bracketed, bare] = /^\[(.+)\](?::\d+)?$|^([\d.]+):\d+$/.exec(hop) ?? []
    const next = bracketed ?? bare ?? hop
    if (isIP(next) === 0) break
    address = next
  }
  return withoutMapping(address)
}

/** An IPv4 address as such, if it comes mapped into IPv6 (RFC 4291, section 2.5.5.2). */
export function withoutMapping(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}
