import { useInfiniteQuery } from "@tanstack/react-query";
import { Paperclip, Send, Square, X } from "lucide-react";
import { type KeyboardEvent, useId, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { nameOf, unfinishedMentionIn, workflowsToOffer } from "./mention";
import { type ChatWorkflow, chatWorkflowsFound } from "./sessions";

interface Props {
  /** The workflow of the conversation. */
  workflow: ChatWorkflow;
  /** Whether a mention can address another workflow. */
  mayMention: boolean;
  text: string;
  onText: (text: string) => void;
  files: readonly File[];
  onFiles: (files: readonly File[]) => void;
  /** The last message, recalled by arrow up. */
  last: string;
  /** A turn is running: it can be stopped, and a steerable one accepts further messages. */
  isBusy: boolean;
  isSteerable: boolean;
  isSending: boolean;
  onSend: () => void;
  onStop: () => void;
}

/** A message field: Enter sends, Shift-Enter starts a new line, Escape stops, arrow up recalls the last message. */
export function Composer(props: Props) {
  const { t, i18n } = useTranslation();
  const { text, isBusy } = props;
  const field = useId();
  const list = useId();
  const [at, setAt] = useState(0);
  const [dismissed, setDismissed] = useState("");
  const box = useRef<HTMLTextAreaElement>(null);
  const mention = props.mayMention ? unfinishedMentionIn(text) : null;
  const others = useInfiniteQuery({ ...chatWorkflowsFound(mention ?? ""), enabled: mention !== null });
  const known = others.data?.pages.flatMap((page) => page.workflows) ?? [];
  const found = mention === null || dismissed === text ? null : workflowsToOffer(text, known, i18n.language);
  const choices = found ?? [];
  const chosen = Math.min(at, choices.length - 1);
  const maySend = text.trim() !== "" && !props.isSending && (!isBusy || props.isSteerable);

  const take = (one: ChatWorkflow | undefined) => {
    if (!one) return;
    props.onText(`@${one.id} `);
    setAt(0);
    box.current?.focus();
  };
  const press = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    const { key } = event;
    if (choices.length > 0 && (key === "ArrowDown" || key === "ArrowUp")) {
      setAt((chosen + (key === "ArrowDown" ? 1 : choices.length - 1)) % choices.length);
    } else if (choices.length > 0 && (key === "Enter" || key === "Tab")) take(choices[chosen]);
    else if (key === "Escape" && choices.length > 0) setDismissed(text);
    else if (key === "Escape" && isBusy) props.onStop();
    else if (key === "ArrowUp" && text === "" && props.last) props.onText(props.last);
    else if (key === "Enter" && !event.shiftKey) {
      if (maySend) props.onSend();
    } else return;
    event.preventDefault();
  };

  return (
    <form
      className="relative border-t border-line bg-surface p-3"
      onSubmit={(event) => {
        event.preventDefault();
        if (maySend) props.onSend();
      }}
    >
      {choices.length > 0 ? <MentionList id={list} choices={choices} chosen={chosen} onChoose={take} /> : null}
      <AttachedFiles files={props.files} onFiles={props.onFiles} />
      <div className="flex items-end gap-2">
        {props.workflow.files.length > 0 ? (
          <AttachButton onAdd={(files) => props.onFiles([...props.files, ...files])} />
        ) : null}
        <div className="min-w-0 flex-1">
          <label htmlFor={field} className="sr-only">
            {t("chat.message")}
          </label>
          <textarea
            id={field}
            ref={box}
            value={text}
            rows={1}
            aria-controls={choices.length > 0 ? list : undefined}
            aria-activedescendant={choices.length > 0 ? `${list}-${chosen}` : undefined}
            onChange={(event) => {
              setAt(0);
              props.onText(event.target.value);
            }}
            onKeyDown={press}
            placeholder={
              isBusy
                ? t(props.isSteerable ? "chat.steerHint" : "chat.waitHint")
                : t(props.mayMention ? "chat.messageHint" : "chat.messageTo", {
                    name: nameOf(props.workflow, i18n.language),
                  })
            }
            className="block field-sizing-content max-h-48 min-h-9 w-full resize-none rounded-md border border-line-strong bg-surface px-2.5 py-2"
          />
        </div>
        {isBusy ? (
          <Button onClick={props.onStop} className="h-9">
            <Square className="size-3.5 fill-current" aria-hidden /> {t("assistant.stop")}
          </Button>
        ) : null}
        {!isBusy || props.isSteerable ? (
          <Button kind="primary" type="submit" disabled={!maySend} aria-label={t("assistant.send")} className="h-9">
            <Send className="size-4" aria-hidden />
          </Button>
        ) : null}
      </div>
    </form>
  );
}

/** The workflows that the user may address. */
function MentionList(props: {
  id: string;
  choices: readonly ChatWorkflow[];
  chosen: number;
  onChoose: (workflow: ChatWorkflow) => void;
}) {
  const { t, i18n } = useTranslation();
  return (
    <div
      id={props.id}
      role="listbox"
      aria-label={t("chat.mention")}
      className="absolute bottom-full left-3 mb-1 max-h-64 w-80 max-w-[90vw] overflow-auto rounded-md border border-line bg-raised p-1 shadow-lg"
    >
      {props.choices.map((one, nth) => (
        <div
          key={one.id}
          id={`${props.id}-${nth}`}
          role="option"
          tabIndex={-1}
          aria-selected={nth === props.chosen}
          onMouseDown={(event) => {
            event.preventDefault();
            props.onChoose(one);
          }}
          className="cursor-pointer rounded px-2.5 py-1.5 aria-selected:bg-accent-soft"
        >
          <bdi className="font-medium">{nameOf(one, i18n.language)}</bdi>{" "}
          <span className="font-mono text-xs text-ink-faint">@{one.id}</span>
        </div>
      ))}
    </div>
  );
}

function AttachedFiles({ files, onFiles }: { files: readonly File[]; onFiles: (files: readonly File[]) => void }) {
  const { t } = useTranslation();
  return (
    <ul className="mb-2 flex flex-wrap gap-1.5 empty:hidden">
      {files.map((file) => (
        <li key={file.name} className="flex items-center gap-1 rounded-full bg-idle-soft py-0.5 pr-1 pl-2.5 text-xs">
          <bdi>{file.name}</bdi>
          <button
            type="button"
            aria-label={t("chat.detach", { name: file.name })}
            onClick={() => onFiles(files.filter((one) => one !== file))}
            className="flex size-6 items-center justify-center rounded-full hover:bg-sunken"
          >
            <X className="size-3.5" aria-hidden />
          </button>
        </li>
      ))}
    </ul>
  );
}

function AttachButton({ onAdd }: { onAdd: (files: FileList | never[]) => void }) {
  const { t } = useTranslation();
  return (
    <label className="flex size-9 shrink-0 cursor-pointer items-center justify-center rounded-md text-ink-soft focus-within:outline-2 focus-within:outline-accent hover:bg-sunken">
      <Paperclip className="size-4" aria-hidden />
      <span className="sr-only">{t("chat.attach")}</span>
      <input
        type="file"
        multiple
        className="sr-only"
        onChange={(event) => {
          onAdd(event.target.files ?? []);
          event.target.value = "";
        }}
      />
    </label>
  );
}
