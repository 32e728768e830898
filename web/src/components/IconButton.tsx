import type { LucideIcon } from "lucide-react";
import type { ButtonHTMLAttributes } from "react";

const KINDS = {
  plain: "border border-line-strong bg-surface hover:bg-sunken",
  quiet: "text-ink-soft hover:bg-idle-soft hover:text-ink",
  danger: "border border-failed/50 text-failed hover:bg-failed-soft",
} as const;
const SIZES = { usual: "size-8", small: "size-6" } as const;

/** The style of a square with an icon, for buttons and links. */
export function iconLook(kind: keyof typeof KINDS = "quiet", size: keyof typeof SIZES = "usual"): string {
  return `inline-flex shrink-0 items-center justify-center rounded-md disabled:opacity-40 ${SIZES[size]} ${KINDS[kind]}`;
}

/** A button with an icon only; `name` is its accessible name and tooltip. */
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
  /** The keyboard shortcut for the same action, if there is one. */
  keys?: string;
  kind?: keyof typeof KINDS;
  size?: keyof typeof SIZES;
  /** The action is running: the icon spins. */
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
