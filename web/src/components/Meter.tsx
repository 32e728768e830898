/** A bar that shows how much of something is used. Its colour is a warning; the text beside it carries the same
 * information. */
export function Meter({ part, warnAt = 0.8 }: { part: number; warnAt?: number }) {
  const look = part >= 1 ? "bg-failed" : part >= warnAt ? "bg-waiting" : "bg-accent";
  return (
    <span aria-hidden className="block h-1.5 w-full min-w-16 overflow-hidden rounded-full bg-idle-soft">
      <span className={`block h-full ${look}`} style={{ width: `${Math.min(100, part * 100)}%` }} />
    </span>
  );
}
