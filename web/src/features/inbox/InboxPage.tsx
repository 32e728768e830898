import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { mentions } from "@/api/queries";
import { useTitle } from "@/components/useTitle";
import { AnsweredGates } from "./AnsweredGates";
import type { InboxList } from "./lists";
import { Mentions } from "./Mentions";
import { OpenGates } from "./OpenGates";

/** Requests to people: open ones, and the answers that were given. */
export function InboxPage() {
  const { t } = useTranslation();
  const { list } = useSearch({ from: "/inbox" });
  const unread = useQuery(mentions()).data?.unread ?? 0;
  useTitle(t("inbox.title"));
  return (
    <div className="mx-auto max-w-5xl p-4 sm:p-6">
      <div className="mb-5 flex flex-wrap items-center gap-x-6 gap-y-2">
        <h1 className="text-xl font-semibold">{t("inbox.title")}</h1>
        <nav aria-label={t("inbox.lists")} className="flex gap-1">
          <ListLink name={t("inbox.openOnes")} />
          <ListLink list="answered" name={t("inbox.answered")} />
          <ListLink list="mentions" name={t("mentions.title")} count={unread} />
        </nav>
      </div>
      {list === "answered" ? <AnsweredGates /> : list === "mentions" ? <Mentions /> : <OpenGates />}
    </div>
  );
}

function ListLink({ list, name, count = 0 }: { list?: InboxList; name: string; count?: number }) {
  return (
    <Link
      to="/inbox"
      search={list ? { list } : {}}
      activeOptions={{ exact: true, includeSearch: true }}
      className="flex h-8 items-center gap-1.5 rounded-md px-2.5 text-ink-soft hover:bg-sunken data-[status=active]:bg-accent-soft data-[status=active]:text-accent"
    >
      {name}
      {count > 0 ? (
        <span className="rounded-full bg-waiting-soft px-1.5 text-xs font-medium text-waiting">{count}</span>
      ) : null}
    </Link>
  );
}
