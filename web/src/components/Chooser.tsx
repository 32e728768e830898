/** A search field with a list of matching choices. Arrow keys and Enter or a click choose. */
import type { LucideIcon } from "lucide-react";
import { Fragment, useEffect, useId, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { bestMatches } from "./matching";

export interface Choice {
  id: string;
  name: string;
  about: string;
  /** The name in the document, if `about` does not contain it. */
  code?: string;
  icon?: LucideIcon;
  /** Additional text that the search matches. */
  text?: string;
  /** Heading of its group; shown until the user searches. */
  group?: string;
  /** Why the choice is disabled; undefined if it is enabled. */
  disabledReason?: string | undefined;
}

const SHOWN_MAX = 60;

/** Enabled choices come before disabled ones, whatever their score. */
const disabledLast = (found: readonly Choice[]): Choice[] =>
  [...found.filter((one) => !one.disabledReason), ...found.filter((one) => one.disabledReason)].slice(0, SHOWN_MAX);

export function Chooser(props: {
  label: string;
  choices: readonly Choice[];
  onChoose: (id: string) => void;
  /** Called with the highlighted choice while the user moves through the list. */
  onMove?: (id: string) => void;
  /** Called with the search text, to load further choices. */
  onSearch?: (words: string) => void;
}) {
  const { t } = useTranslation();
  const { label, choices, onChoose, onMove, onSearch } = props;
  const id = useId();
  const [searchText, setWanted] = useState("");
  const [at, setAt] = useState(0);
  const words = searchText.trim();
  const found = useMemo(
    () => disabledLast(bestMatches(words, choices, (one) => [one.name, one.about, one.id, one.text ?? ""])),
    [words, choices],
  );
  const list = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  // Focus the field, so that the user can type at once.
  useEffect(() => field.current?.focus(), []);
  const here = Math.min(at, found.length - 1);
  useEffect(() => {
    list.current?.querySelectorAll("[role=option]")[here]?.scrollIntoView({ block: "nearest" });
  }, [here]);
  const move = (to: number) => {
    const next = (to + found.length) % found.length;
    setAt(next);
    const one = found[next];
    if (one) onMove?.(one.id);
  };
  const choose = (one: Choice | undefined) => {
    if (one && !one.disabledReason) onChoose(one.id);
  };
  return (
    <div>
      <input
        ref={field}
        role="combobox"
        aria-expanded
        aria-controls={id}
        aria-label={label}
        aria-activedescendant={found[here] ? `${id}-${here}` : undefined}
        placeholder={label}
        value={searchText}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => {
          setWanted(event.target.value);
          onSearch?.(event.target.value.trim());
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") move(here + 1);
          else if (event.key === "ArrowUp") move(here - 1);
          else if (event.key === "Enter") choose(found[here]);
          else return;
          event.preventDefault();
        }}
        className="h-9 w-full rounded-md border border-line-strong bg-surface px-3"
      />
      <div
        ref={list}
        id={id}
        role="listbox"
        aria-label={label}
        tabIndex={-1}
        className="mt-2 max-h-[46vh] overflow-auto"
      >
        {found.map((one, nth) => (
          <Fragment key={one.id}>
            {!words && one.group !== undefined && one.group !== found[nth - 1]?.group ? (
              <p aria-hidden className="px-2.5 pt-2 pb-0.5 text-xs text-ink-faint">
                {one.group}
              </p>
            ) : null}
            {/* biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys */}
            <div
              id={`${id}-${nth}`}
              role="option"
              tabIndex={-1}
              aria-selected={nth === here}
              aria-disabled={one.disabledReason !== undefined}
              onClick={() => choose(one)}
              onMouseMove={() => nth === here || setAt(nth)}
              className="flex min-h-9 cursor-pointer items-center gap-2.5 rounded-md px-2.5 py-1 aria-disabled:cursor-default aria-disabled:opacity-60 aria-selected:bg-accent-soft"
            >
              {one.icon ? <one.icon className="size-4 shrink-0 text-ink-soft" aria-hidden /> : null}
              <span className="max-w-[60%] shrink-0 truncate font-medium">
                <bdi>{one.name}</bdi>
              </span>
              <span className="min-w-0 flex-1 truncate text-xs text-ink-soft">
                {one.disabledReason ?? one.about}
                {one.code ? (
                  <>
                    {" · "}
                    <bdi className="font-mono">{one.code}</bdi>
                  </>
                ) : null}
              </span>
            </div>
          </Fragment>
        ))}
      </div>
      <p role="status" className={found.length === 0 ? "p-2 text-ink-soft" : "sr-only"}>
        {found.length === 0 ? t("chooser.none", { words }) : t("chooser.found", { count: found.length })}
      </p>
    </div>
  );
}
