import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { me } from "@/api/queries";
import { QueryResult } from "@/components/QueryResult";
import { useHasRole } from "@/components/useHasRole";
import { CommentEntry } from "./CommentEntry";
import { CommentForm } from "./CommentForm";
import { addComment, commentsOn, type Subject, shownComments } from "./comments";

/** The comments on a workflow or an execution: those on the selected place, or all of them. */
export function Comments(props: {
  subject: Subject;
  /** The selected node or step; null: none. */
  place: string | null;
  nameOf: (place: string) => string;
  onPlace: (place: string) => void;
}) {
  const { t } = useTranslation();
  const { subject, place } = props;
  const client = useQueryClient();
  const known = useQuery(commentsOn(subject));
  const user = useQuery(me()).data;
  const mayWrite = useHasRole("operator");
  const [withResolved, showResolved] = useState(false);
  const checkbox = useId();
  const send = async (text: string) => {
    await addComment(subject, place ?? "", text);
    await client.invalidateQueries({ queryKey: ["comments"] });
  };
  return (
    <section aria-label={t("comments.title")} className="space-y-3">
      <p className="text-ink-soft wrap-anywhere">
        {place ? t("comments.onPlace", { place: props.nameOf(place) }) : t(`comments.on.${subject.kind}`)}
      </p>
      <QueryResult query={known}>
        {(all) => {
          const shown = shownComments(all, place, withResolved);
          const resolved = all.filter((one) => one.resolvedBy !== null).length;
          return (
            <>
              {resolved > 0 ? (
                <label htmlFor={checkbox} className="flex min-h-6 items-center gap-2">
                  <input
                    id={checkbox}
                    type="checkbox"
                    checked={withResolved}
                    onChange={(event) => showResolved(event.target.checked)}
                  />
                  {t("comments.withResolved", { count: resolved })}
                </label>
              ) : null}
              {shown.length === 0 ? <p className="text-ink-faint">{t("comments.none")}</p> : null}
              <ul className="divide-y divide-line">
                {shown.map((one) => (
                  <CommentEntry
                    key={one.id}
                    comment={one}
                    subject={subject}
                    me={user?.name ?? ""}
                    place={place === null && one.place ? props.nameOf(one.place) : undefined}
                    onPlace={() => one.place && props.onPlace(one.place)}
                  />
                ))}
              </ul>
            </>
          );
        }}
      </QueryResult>
      {mayWrite ? <CommentForm name={t("comments.write")} subject={subject} onSend={send} /> : null}
    </section>
  );
}
