import { useTranslation } from "react-i18next";
import type { Subject } from "./comments";
import { usePresence } from "./presence";

const SHOWN_MAX = 4;

/** Initials of the other people on a workflow or an execution, with what each has selected. */
export function PresentPeople(props: {
  subject: Subject;
  /** The node or step that the user has selected; empty: none. */
  place: string;
  nameOf: (place: string) => string;
}) {
  const { t } = useTranslation();
  const people = usePresence(props.subject, props.place);
  const labelOf = (name: string, place: string | null) =>
    place ? t("presence.at", { name, place: props.nameOf(place) }) : t("presence.here", { name });
  const more = people.length - SHOWN_MAX;
  return (
    <ul aria-label={t("presence.label")} aria-live="polite" className="flex items-center empty:hidden">
      {people.slice(0, SHOWN_MAX).map(({ name, place }) => (
        <li
          key={name}
          title={labelOf(name, place)}
          className="-ml-1 flex size-7 items-center justify-center rounded-full border-2 border-surface bg-accent-soft text-xs font-medium text-accent first:ml-0"
        >
          <span aria-hidden>{initialsOf(name)}</span>
          <span className="sr-only">{labelOf(name, place)}</span>
        </li>
      ))}
      {more > 0 ? <li className="pl-1 text-xs text-ink-soft">{t("presence.more", { count: more })}</li> : null}
    </ul>
  );
}

/** The first letters of the first two words of a name. */
export function initialsOf(name: string): string {
  const words = name.split(/[\s._@-]+/).filter(Boolean);
  return words
    .slice(0, 2)
    .map((word) => [...word][0]?.toUpperCase() ?? "")
    .join("");
}
