/** A sentence in which words of the language stand between backticks. */
export function CodeText({ text }: { text: string }) {
  // Each second part stood between two of them; one that stands alone is a sign like others.
  const parts = text.split(/`([^`]+)`/);
  return parts.map((part, nth) =>
    nth % 2 === 0 ? (
      part
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a sentence are where they are
      <code key={nth} className="font-mono text-[0.95em]">
        {part}
      </code>
    ),
  );
}
