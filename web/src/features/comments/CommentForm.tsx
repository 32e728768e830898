import { useMutation } from "@tanstack/react-query";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { ErrorMessage } from "@/components/StatusMessage";
import type { Subject } from "./comments";
import { MentionTextarea } from "./MentionTextarea";

const TEXT_MAX = 10_000;

/** A field for the text of a comment. Ctrl+Enter sends it. */
export function CommentForm(props: {
  /** Accessible name of the field. */
  name: string;
  subject: Subject;
  text?: string;
  onSend: (text: string) => Promise<unknown>;
  onCancel?: () => void;
}) {
  const { t } = useTranslation();
  const hint = useId();
  const [text, write] = useState(props.text ?? "");
  const send = useMutation({ mutationFn: () => props.onSend(text.trim()), onSuccess: () => write("") });
  const isReady = text.trim() !== "" && !send.isPending;
  return (
    <form
      className="space-y-2"
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) send.mutate();
      }}
    >
      <MentionTextarea
        name={props.name}
        describedBy={hint}
        charsMax={TEXT_MAX}
        subject={props.subject}
        text={text}
        onChange={write}
        onSend={() => isReady && send.mutate()}
      />
      <p id={hint} className="text-xs text-ink-faint">
        {t("comments.hint")}
      </p>
      {send.isError ? <ErrorMessage error={send.error} /> : null}
      <div className="flex gap-2">
        <Button kind="primary" type="submit" disabled={!isReady}>
          {t(props.onCancel ? "comments.save" : "comments.send")}
        </Button>
        {props.onCancel ? <Button onClick={props.onCancel}>{t("comments.cancel")}</Button> : null}
      </div>
    </form>
  );
}
