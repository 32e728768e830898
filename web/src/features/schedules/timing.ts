/** The timing of a schedule: as form fields, and in the API's form. */

export type Timing =
  | { cron: string; timezone: string }
  | { every: number; timezone?: string }
  | { at: number; timezone?: string };

export type Kind = "cron" | "every" | "at";

export const UNITS = { seconds: 1, minutes: 60, hours: 3600, days: 86_400 } as const;
export type Unit = keyof typeof UNITS;

export interface TimingDraft {
  kind: Kind;
  cron: string;
  amount: string;
  unit: Unit;
  /** The value of a datetime-local input, in the user's time zone. */
  at: string;
  timezone: string;
}

export const ownZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

export function newDraft(): TimingDraft {
  return { kind: "cron", cron: "0 8 * * 1-5", amount: "15", unit: "minutes", at: "", timezone: ownZone() };
}

export function draftOf(known: {
  cron: string | null;
  every: number | null;
  at: number | null;
  timezone: string;
}): TimingDraft {
  const empty = { ...newDraft(), timezone: known.timezone };
  if (known.cron !== null) return { ...empty, kind: "cron", cron: known.cron };
  if (known.every !== null) return { ...empty, kind: "every", ...amountOf(known.every) };
  return { ...empty, kind: "at", at: known.at === null ? "" : localText(known.at) };
}

/** Null if the form is incomplete. */
export function timingOf(draft: TimingDraft): Timing | null {
  if (draft.kind === "cron") {
    const cron = draft.cron.trim();
    return cron && draft.timezone.trim() ? { cron, timezone: draft.timezone.trim() } : null;
  }
  if (draft.kind === "every") {
    const every = Number(draft.amount) * UNITS[draft.unit];
    return Number.isFinite(every) && every > 0 ? { every } : null;
  }
  const at = new Date(draft.at).getTime() / 1000;
  return Number.isFinite(at) ? { at } : null;
}

/** Express seconds as a whole number in the largest possible unit. */
export function amountOf(seconds: number): { amount: string; unit: Unit } {
  const names = Object.keys(UNITS) as Unit[];
  const unit = names.reverse().find((one) => seconds % UNITS[one] === 0) ?? "seconds";
  return { amount: String(seconds / UNITS[unit]), unit };
}

function localText(at: number): string {
  const two = (part: number) => String(part).padStart(2, "0");
  const day = new Date(at * 1000);
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}T${two(day.getHours())}:${two(day.getMinutes())}`;
}

/** Format a time in a time zone, with the weekday: `Mon, 23 Nov 2026, 08:00`. */
export function onClocks(at: number, zone: string, language: string): string {
  const format = new Intl.DateTimeFormat(language, {
    weekday: "short",
    year: "numeric",
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    timeZone: zone,
  });
  return format.format(new Date(at * 1000));
}
