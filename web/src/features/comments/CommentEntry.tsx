import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Check, Pencil, RotateCcw, Trash2 } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { useTranslation } from "react-i18next";
import { IconButton } from "@/components/IconButton";
import { RelativeTime } from "@/components/RelativeTime";
import { ErrorMessage } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { CommentForm } from "./CommentForm";
import { type Comment, changeComment, deleteComment, type Subject } from "./comments";

const Markdown = lazy(() => import("@/components/Markdown"));

/** One comment, with the actions that the user may take. */
export function CommentEntry(props: {
  comment: Comment;
  subject: Subject;
  /** The name of the user. */
  me: string;
  /** Display name of the node or step; absent: not shown. */
  place?: string | undefined;
  onPlace?: () => void;
}) {
  const { t } = useTranslation();
  const { comment } = props;
  const [isEditing, edit] = useState(false);
  const client = useQueryClient();
  const onSuccess = () => client.invalidateQueries({ queryKey: ["comments"] });
  const change = useMutation({
    mutationFn: (body: { text?: string; resolved?: boolean }) => changeComment(comment.id, body),
    onSuccess,
  });
  const remove = useMutation({ mutationFn: () => deleteComment(comment.id), onSuccess });
  const mayWrite = useHasRole("operator");
  const isAdmin = useHasRole("admin");
  const isOwn = comment.by === props.me;
  const error = change.error ?? remove.error;
  return (
    <li className="py-3">
      <div className="flex flex-wrap items-center gap-x-2 text-xs text-ink-soft">
        <bdi className="font-medium text-ink">{comment.by}</bdi>
        <RelativeTime at={comment.at} />
        {comment.editedAt ? <span>{t("comments.edited")}</span> : null}
        {props.place ? (
          <button type="button" onClick={props.onPlace} className="min-h-6 text-accent hover:underline wrap-anywhere">
            <bdi>{props.place}</bdi>
          </button>
        ) : null}
        <span className="ml-auto flex">
          {mayWrite && comment.workflow ? (
            <IconButton
              icon={comment.resolvedBy ? RotateCcw : Check}
              name={t(comment.resolvedBy ? "comments.reopen" : "comments.resolve")}
              onClick={() => change.mutate({ resolved: !comment.resolvedBy })}
            />
          ) : null}
          {mayWrite && isOwn ? <IconButton icon={Pencil} name={t("comments.edit")} onClick={() => edit(true)} /> : null}
          {mayWrite && (isOwn || isAdmin) ? (
            <IconButton icon={Trash2} name={t("comments.delete")} onClick={() => remove.mutate()} />
          ) : null}
        </span>
      </div>
      {isEditing ? (
        <CommentForm
          text={comment.text}
          subject={props.subject}
          name={t("comments.edit")}
          onCancel={() => edit(false)}
          onSend={(text) => change.mutateAsync({ text }).then(() => edit(false))}
        />
      ) : (
        <div className={`wrap-anywhere ${comment.resolvedBy ? "text-ink-soft" : ""}`}>
          <Suspense fallback={<p className="whitespace-pre-wrap">{comment.text}</p>}>
            <Markdown text={comment.text} />
          </Suspense>
        </div>
      )}
      {comment.resolvedBy ? (
        <p className="mt-1 text-xs text-done">{t("comments.resolvedBy", { by: comment.resolvedBy })}</p>
      ) : null}
      {error && !isEditing ? <ErrorMessage error={error} /> : null}
    </li>
  );
}
