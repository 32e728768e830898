import { type KeyboardEvent, useId, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { BOX } from "@/components/LabelledField";
import type { Subject } from "./comments";
import { begunMention, completeMention, useMentionable } from "./mentioning";

/** A field for Markdown. After "@" it lists people; arrow keys with Enter or Tab, or a click, choose one. */
export function MentionTextarea(props: {
  /** Accessible name. */
  name: string;
  describedBy: string;
  charsMax: number;
  subject: Subject;
  text: string;
  onChange: (text: string) => void;
  onSend: () => void;
}) {
  const { t } = useTranslation();
  const { text, onChange } = props;
  const id = useId();
  const box = useRef<HTMLTextAreaElement>(null);
  const [words, setWords] = useState<string | null>(null);
  const [at, setAt] = useState(0);
  const found = useMentionable(props.subject, words);
  const isShown = words !== null && found.length > 0;
  const look = () => {
    const caret = box.current?.selectionStart ?? 0;
    setWords(begunMention(box.current?.value ?? "", caret));
    setAt(0);
  };
  const choose = (name: string) => {
    const field = box.current;
    if (!field) return;
    const next = completeMention(field.value, field.selectionStart, name);
    onChange(next.text);
    setWords(null);
    // After React has written the text.
    requestAnimationFrame(() => field.setSelectionRange(next.caret, next.caret));
  };
  const press = (event: KeyboardEvent) => {
    const name = isShown ? found[at] : undefined;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) return props.onSend();
    if (name === undefined) return;
    if (event.key === "ArrowDown") setAt((at + 1) % found.length);
    else if (event.key === "ArrowUp") setAt((at - 1 + found.length) % found.length);
    else if (event.key === "Enter" || event.key === "Tab") choose(name);
    else if (event.key === "Escape") {
      setWords(null);
      // Do not close a surrounding dialog.
      event.stopPropagation();
    } else return;
    event.preventDefault();
  };
  return (
    <div className="relative">
      <textarea
        ref={box}
        aria-label={props.name}
        aria-describedby={props.describedBy}
        aria-keyshortcuts="Control+Enter"
        aria-autocomplete="list"
        aria-controls={isShown ? id : undefined}
        aria-activedescendant={isShown ? `${id}-${at}` : undefined}
        rows={3}
        maxLength={props.charsMax}
        value={text}
        onChange={(event) => {
          onChange(event.target.value);
          look();
        }}
        onClick={look}
        onKeyDown={press}
        onBlur={() => setWords(null)}
        className={BOX}
      />
      {isShown ? (
        <div
          id={id}
          role="listbox"
          tabIndex={-1}
          aria-label={t("comments.people")}
          className="absolute z-30 max-h-64 w-full overflow-auto rounded-md border border-line-strong bg-raised p-1 shadow-lg"
        >
          {found.map((name, nth) => (
            <div
              key={name}
              id={`${id}-${nth}`}
              role="option"
              tabIndex={-1}
              aria-selected={nth === at}
              // Prevents that the field loses the focus.
              onMouseDown={(event) => {
                event.preventDefault();
                choose(name);
              }}
              onMouseMove={() => nth === at || setAt(nth)}
              className="min-h-7 cursor-pointer truncate rounded px-2 py-1 aria-selected:bg-accent-soft"
            >
              <bdi>{name}</bdi>
            </div>
          ))}
        </div>
      ) : null}
    </div>
  );
}
