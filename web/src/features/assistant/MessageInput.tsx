import { Send, Square } from "lucide-react";
import { type KeyboardEvent, useId } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { useStoredState } from "@/components/useStoredState";

/** A message field: Enter sends, Shift-Enter starts a new line. While an answer is in progress, a stop button replaces
 * the send button. */
export function MessageInput(props: {
  /** Storage key of the draft, which survives a reload. */
  name: string;
  label: string;
  placeholder: string;
  isBusy: boolean;
  rows?: number;
  autoFocus?: boolean;
  onSend: (text: string) => void;
  onStop: () => void;
}) {
  const { t } = useTranslation();
  const [text, setText] = useStoredState(props.name);
  const field = useId();
  const send = () => {
    if (props.isBusy || !text.trim()) return;
    props.onSend(text.trim());
    setText("");
  };
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  return (
    <form
      className="flex items-end gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <div className="min-w-0 flex-1">
        <label htmlFor={field} className="sr-only">
          {props.label}
        </label>
        <textarea
          id={field}
          // biome-ignore lint/a11y/noAutofocus: in a dialog that was opened to type into this field
          autoFocus={props.autoFocus ?? false}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={press}
          placeholder={props.placeholder}
          maxLength={20_000}
          rows={props.rows ?? 2}
          className="block field-sizing-content max-h-48 min-h-14 w-full resize-none rounded-md border border-line-strong bg-surface p-2"
        />
      </div>
      {props.isBusy ? (
        <Button onClick={props.onStop}>
          <Square className="size-3.5 fill-current" aria-hidden /> {t("assistant.stop")}
        </Button>
      ) : (
        <Button kind="primary" type="submit" disabled={!text.trim()} aria-label={t("assistant.send")}>
          <Send className="size-4" aria-hidden />
        </Button>
      )}
    </form>
  );
}
