/** A sentence with code words between backticks. */
export function CodeText({ text }: { text: string }) {
  // Odd parts were between two backticks. A single backtick stays an ordinary character.
  const parts = text.split(/`([^`]+)`/);
  return parts.map((part, nth) =>
    nth % 2 === 0 ? (
      part
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a sentence keep their positions
      <code key={nth} className="font-mono text-[0.95em]">
        {part}
      </code>
    ),
  );
}
