import type { LucideIcon } from "lucide-react";
import type { ButtonHTMLAttributes } from "react";

const KINDS = {
  plain: "border border-line-strong bg-surface hover:bg-sunken",
  quiet: "text-ink-soft hover:bg-idle-soft hover:text-ink",
  danger: "border border-failed/50 text-failed hover:bg-failed-soft",
} as const;
const SIZES = { usual: "size-8", small: "size-6" } as const;

/** How a square with an icon looks: also of links that are one. */
export function iconLook(kind: keyof typeof KINDS = "quiet", size: keyof typeof SIZES = "usual"): string {
  return `inline-flex shrink-0 items-center justify-center rounded-md disabled:opacity-40 ${SIZES[size]} ${KINDS[kind]}`;
}

/** A button that is an icon: `name` says what it does, to who hears it and to who points at it. */
export function IconButton({
  icon: Icon,
  name,
  keys,
  kind = "quiet",
  size = "usual",
  isBusy = false,
  className = "",
  ...rest
}: Omit<ButtonHTMLAttributes<HTMLButtonElement>, "name" | "children"> & {
  icon: LucideIcon;
  name: string;
  /** The key that does the same, where there is one. */
  keys?: string;
  kind?: keyof typeof KINDS;
  size?: keyof typeof SIZES;
  /** What it did is under way: its icon turns. */
  isBusy?: boolean;
}) {
  return (
    <button
      type="button"
      aria-label={name}
      title={keys ? `${name} (${keys})` : name}
      className={`${iconLook(kind, size)} ${className}`}
      {...rest}
    >
      <Icon className={`${size === "small" ? "size-3.5" : "size-4"} ${isBusy ? "animate-spin" : ""}`} aria-hidden />
    </button>
  );
}
