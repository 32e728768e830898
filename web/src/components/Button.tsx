import type { ButtonHTMLAttributes } from "react";

const KINDS = {
  primary: "bg-accent text-on-accent hover:brightness-90",
  plain: "border border-line-strong bg-surface hover:bg-sunken",
  quiet: "text-ink-soft hover:bg-sunken hover:text-ink",
  danger: "border border-failed/50 text-failed hover:bg-failed-soft",
  /** A weaker form of `danger`, for a button in each row of a list. */
  mild: "text-failed hover:bg-failed-soft",
} as const;

export function Button({
  kind = "plain",
  className = "",
  ...rest
}: ButtonHTMLAttributes<HTMLButtonElement> & { kind?: keyof typeof KINDS }) {
  return (
    <button
      type="button"
      className={`inline-flex h-8 items-center gap-1.5 rounded-md px-3 font-medium whitespace-nowrap disabled:opacity-50 ${KINDS[kind]} ${className}`}
      {...rest}
    />
  );
}
