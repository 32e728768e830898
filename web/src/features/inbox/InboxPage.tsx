import { Link, useSearch } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { useTitle } from "@/components/useTitle";
import { AnsweredGates } from "./AnsweredGates";
import type { InboxList } from "./lists";
import { OpenGates } from "./OpenGates";

/** Requests to people: open ones, and the answers that were given. */
export function InboxPage() {
  const { t } = useTranslation();
  const { list } = useSearch({ from: "/inbox" });
  useTitle(t("inbox.title"));
  return (
    <div className="mx-auto max-w-5xl p-4 sm:p-6">
      <div className="mb-5 flex flex-wrap items-center gap-x-6 gap-y-2">
        <h1 className="text-xl font-semibold">{t("inbox.title")}</h1>
        <nav aria-label={t("inbox.lists")} className="flex gap-1">
          <ListLink name={t("inbox.openOnes")} />
          <ListLink list="answered" name={t("inbox.answered")} />
        </nav>
      </div>
      {list === "answered" ? <AnsweredGates /> : <OpenGates />}
    </div>
  );
}

function ListLink({ list, name }: { list?: InboxList; name: string }) {
  return (
    <Link
      to="/inbox"
      search={list ? { list } : {}}
      activeOptions={{ exact: true, includeSearch: true }}
      className="flex h-8 items-center gap-1.5 rounded-md px-2.5 text-ink-soft hover:bg-sunken data-[status=active]:bg-accent-soft data-[status=active]:text-accent"
    >
      {name}
    </Link>
  );
}
