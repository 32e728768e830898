/** Comments that mention the user, newest first. Showing them marks them as read. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useEffect } from "react";
import { useTranslation } from "react-i18next";
import { mentions } from "@/api/queries";
import { QueryResult } from "@/components/QueryResult";
import { RelativeTime } from "@/components/RelativeTime";
import { EmptyMessage } from "@/components/StatusMessage";
import { useWorkflowName } from "@/components/useWorkflowName";
import { type Mention, markMentionsRead } from "../comments/comments";
import { hashTo } from "../editor/document/nodeLinks";

const Markdown = lazy(() => import("@/components/Markdown"));

export function Mentions() {
  const { t } = useTranslation();
  const known = useQuery(mentions());
  const client = useQueryClient();
  const { mutate: read } = useMutation({
    mutationFn: markMentionsRead,
    // The list keeps its marks while it is on display; only the count changes.
    onSuccess: () => client.setQueryData(mentions().queryKey, (now) => (now ? { ...now, unread: 0 } : now)),
  });
  const unread = known.data?.unread ?? 0;
  useEffect(() => {
    if (unread > 0) read();
  }, [unread, read]);
  return (
    <QueryResult query={known}>
      {({ mentions: all }) =>
        all.length === 0 ? (
          <EmptyMessage title={t("mentions.none")}>{t("mentions.noneHint")}</EmptyMessage>
        ) : (
          <ul className="divide-y divide-line rounded-lg border border-line bg-surface">
            {all.map((one) => (
              <MentionEntry key={one.id} mention={one} />
            ))}
          </ul>
        )
      }
    </QueryResult>
  );
}

function MentionEntry({ mention }: { mention: Mention }) {
  const { t } = useTranslation();
  const workflowName = useWorkflowName();
  const link = "text-accent hover:underline wrap-anywhere";
  return (
    <li className="px-4 py-3">
      <p className="flex flex-wrap items-center gap-x-2 text-xs text-ink-soft">
        {mention.unread ? (
          <span className="rounded-full bg-waiting-soft px-1.5 font-medium text-waiting">{t("mentions.new")}</span>
        ) : null}
        <bdi className="font-medium text-ink">{mention.by}</bdi>
        <RelativeTime at={mention.at} />
        {mention.workflow ? (
          <Link
            to="/workflows/$id"
            params={{ id: mention.workflow }}
            search={{ panel: "comments" }}
            {...(mention.place ? { hash: hashTo(mention.place) } : {})}
            className={link}
          >
            {t("mentions.inWorkflow", { workflow: workflowName(mention.workflow) })}
          </Link>
        ) : (
          <Link
            to="/executions/$id"
            params={{ id: mention.execution ?? "" }}
            search={{ view: "comments" }}
            className={link}
          >
            {t("mentions.inExecution", { execution: mention.execution ?? "" })}
          </Link>
        )}
      </p>
      <div className="wrap-anywhere">
        <Suspense fallback={<p className="whitespace-pre-wrap">{mention.text}</p>}>
          <Markdown text={mention.text} />
        </Suspense>
      </div>
    </li>
  );
}
