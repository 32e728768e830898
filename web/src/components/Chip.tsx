import type { ReactNode } from "react";

const LOOKS = {
  plain: "bg-idle-soft text-ink-soft",
  accent: "bg-accent-soft text-accent",
  good: "bg-done-soft text-done",
  careful: "bg-waiting-soft text-waiting",
  bad: "bg-failed-soft text-failed",
} as const;

/** A short label beside a name. */
export function Chip(props: { look?: keyof typeof LOOKS; title?: string | undefined; children: ReactNode }) {
  return (
    <span
      title={props.title}
      className={`inline-flex max-w-full items-center gap-1 rounded-full px-2 py-0.5 text-xs font-medium whitespace-nowrap ${LOOKS[props.look ?? "plain"]}`}
    >
      {props.children}
    </span>
  );
}
