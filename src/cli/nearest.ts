// Finds what a misspelled word was meant to be.

/** The word that was most likely meant by one that is not known. */
export function nearest(typed: string, known: readonly string[]): string | undefined {
  return (
    known.find((word) => isWithin(1, typed, word)) ??
    known.find((word) => word.length > lengthOfOneEdit && isWithin(2, typed, word))
  )
}

/** Shorter words are near to too many others. */
const lengthOfOneEdit = 4

/**
 * Whether so many edits make one word of the other: a letter more, less or another, or two
 * neighbours swapped.
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
