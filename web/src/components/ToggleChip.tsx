import type { ReactNode } from "react";

/** A toggle that filters a list while it is pressed. */
export function ToggleChip(props: { isOn: boolean; onPress: () => void; children: ReactNode }) {
  return (
    <button
      type="button"
      aria-pressed={props.isOn}
      onClick={props.onPress}
      className={`inline-flex min-h-6 max-w-full items-center gap-1.5 truncate rounded-full border px-2.5 py-0.5 text-xs font-medium ${props.isOn ? "border-accent bg-accent-soft text-accent" : "border-line-strong bg-surface text-ink-soft hover:bg-sunken"}`}
    >
      {props.children}
    </button>
  );
}
