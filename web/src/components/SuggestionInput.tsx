/** A text field with a list of suggestions below. Arrow keys and Enter or a click choose. */
import { type InputHTMLAttributes, useEffect, useId, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { bestMatches } from "./matching";

export interface Suggestion {
  name: string;
  about: string;
  /** The value to choose if names are not unique; absent: the name. */
  id?: string;
}

type Input = Omit<InputHTMLAttributes<HTMLInputElement>, "value" | "onChange" | "list" | "role">;

export function SuggestionInput(
  props: Input & {
    value: string;
    suggestions: readonly Suggestion[];
    onType: (text: string) => void;
    onChoose: (name: string) => void;
    /** Called on Enter if no suggestion is highlighted. */
    onEnter?: () => void;
    /** If given, the caller searches and passes the matches as suggestions. */
    onSearch?: (words: string) => void;
    /** A note below the list, such as that there are more matches. */
    note?: string | undefined;
  },
) {
  const { value, suggestions, onType, onChoose, onEnter, onSearch, note, onBlur, ...input } = props;
  const { t } = useTranslation();
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  // On focus all suggestions are listed; after typing, only the matching ones.
  const [isTyped, setTyped] = useState(false);
  // Index of the highlighted suggestion; null until the user moves: then the current value is highlighted if it is
  // listed.
  const [highlighted, setAt] = useState<number | null>(null);
  const list = useRef<HTMLDivElement>(null);
  const isNarrowed = isTyped && !onSearch;
  const found = isNarrowed ? bestMatches(value.trim(), suggestions, (one) => [one.name, one.about]) : suggestions;
  const isComplete = isTyped && found.length === 1 && found[0]?.name === value;
  const at = highlighted ?? (isTyped ? -1 : found.findIndex((one) => one.name === value));
  const isShown = isOpen && (found.length > 0 || Boolean(note)) && !isComplete;
  useEffect(() => {
    list.current?.children[at]?.scrollIntoView({ block: "nearest" });
  }, [at]);
  const open = () => {
    setOpen(true);
    setTyped(false);
    setAt(null);
    onSearch?.("");
  };
  const close = () => setOpen(false);
  const choose = (one: Suggestion) => {
    onChoose(one.id ?? one.name);
    close();
  };
  const onKeyDown = (event: React.KeyboardEvent) => {
    const one = isShown ? found[at] : undefined;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (!isShown) open();
      else if (found.length > 0)
        setAt((at + (event.key === "ArrowDown" ? 1 : at < 0 ? 0 : -1) + found.length) % found.length);
    } else if (event.key === "Enter" && one) choose(one);
    else if (event.key === "Enter" && onEnter) onEnter();
    else if (event.key === "Escape" && isShown) {
      close();
      // Do not close a surrounding dialog.
      event.stopPropagation();
    } else return;
    event.preventDefault();
  };
  return (
    <div className="relative">
      <input
        {...input}
        role="combobox"
        aria-autocomplete="list"
        aria-expanded={isShown}
        aria-controls={isShown ? id : undefined}
        aria-activedescendant={isShown && found[at] ? `${id}-${at}` : undefined}
        autoComplete="off"
        spellCheck={false}
        value={value}
        onClick={open}
        onChange={(event) => {
          onType(event.target.value);
          setOpen(true);
          setTyped(true);
          setAt(null);
          onSearch?.(event.target.value);
        }}
        onKeyDown={onKeyDown}
        onBlur={(event) => {
          close();
          onBlur?.(event);
        }}
      />
      {isShown ? (
        <div className="absolute z-30 mt-1 max-h-64 w-full min-w-56 overflow-auto rounded-md border border-line-strong bg-raised p-1 shadow-lg">
          <div ref={list} id={id} role="listbox" aria-label={t("chooser.found", { count: found.length })} tabIndex={-1}>
            {found.map((one, nth) => (
              <div
                key={one.id ?? one.name}
                id={`${id}-${nth}`}
                role="option"
                tabIndex={-1}
                aria-selected={nth === at}
                // Prevents that the field loses the focus.
                onMouseDown={(event) => {
                  event.preventDefault();
                  choose(one);
                }}
                onMouseMove={() => nth === at || setAt(nth)}
                className="min-h-7 cursor-pointer rounded px-2 py-1 aria-selected:bg-accent-soft"
              >
                <span className="block break-all">
                  <bdi>{one.name}</bdi>
                </span>
                {one.about ? <span className="line-clamp-2 text-xs text-ink-soft">{one.about}</span> : null}
              </div>
            ))}
          </div>
          {note ? <p className="px-2 py-1 text-xs break-words text-ink-soft">{note}</p> : null}
        </div>
      ) : null}
    </div>
  );
}
