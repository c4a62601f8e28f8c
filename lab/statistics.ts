// The middle of several rounds, and ratios within each of them.

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  const middle = sorted.slice(
    Math.floor((sorted.length - 1) / 2),
    Math.floor(sorted.length / 2) + 1,
  )
  return middle.reduce((sum, value) => sum + value, 0) / middle.length
}

interface Rate {
  readonly round: number
  readonly requestsPerSecond: number
}

/** What each of several rates is of the reference in the same round. */
export function ratiosWithinRounds(
  rates: readonly Rate[],
  references: readonly Rate[],
): readonly number[] {
  return rates.map(({ round, requestsPerSecond }) => {
    const reference = references.find((candidate) => candidate.round === round)
    return requestsPerSecond / (reference?.requestsPerSecond ?? Number.NaN)
  })
}
