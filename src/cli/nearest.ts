// Finds the word that a misspelled one was meant to be.

/** The known word that is nearest to the typed one, or undefined if none is near. */
export function nearest(typed: string, known: readonly string[]): string | undefined {
  return (
    known.find((word) => isWithin(1, typed, word)) ??
    // By two edits, a word of four letters or fewer is near to too many others.
    known.find((word) => word.length > 4 && isWithin(2, typed, word))
  )
}

/**
 * Whether so many edits at most turn one word into the other. An edit adds, removes or changes a
 * letter, or swaps two neighbours.
 */
function isWithin(edits: number, one: string, other: string): boolean {
  if (one === other) return true
  if (edits === 0) return false
  let same = 0
  while (one[same] === other[same]) same += 1
  const [a, b] = [one.slice(same), other.slice(same)]
  return (
    isWithin(edits - 1, a.slice(1), b) ||
    isWithin(edits - 1, a, b.slice(1)) ||
    isWithin(edits - 1, a.slice(1), b.slice(1)) ||
    (a[0] === b[1] && a[1] === b[0] && isWithin(edits - 1, a.slice(2), b.slice(2)))
  )
}
