import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useDeferredValue, useState } from "react";
import { useTranslation } from "react-i18next";
import { PageSection } from "@/components/DescriptionList";
import { Listing, LoadMore } from "@/components/Listing";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { RelativeTime } from "@/components/RelativeTime";
import { SearchBox } from "@/components/SearchBox";
import { EmptyMessage } from "@/components/StatusMessage";
import { useWorkflowName } from "@/components/useWorkflowName";
import { bytes, type Owner, owners, SCOPES } from "./memory";

/** The owners of memory with its size: people, conversations, workflows, executions, and the shared memory. */
export function MemoryPage() {
  const { t } = useTranslation();
  const workflowName = useWorkflowName();
  const known = useInfiniteQuery(owners());
  const [wanted, setWanted] = useState("");
  const words = useDeferredValue(wanted.trim().toLowerCase());
  return (
    <Page
      title={t("memory.title")}
      about={t("memory.about")}
      actions={<SearchBox value={wanted} onChange={setWanted} label={t("memory.searchOwner")} />}
    >
      <QueryResult query={known}>
        {({ pages }) => {
          const all = pages.flatMap((page) => page.owners);
          const found = all.filter((one) => `${one.owner} ${workflowName(one.owner)}`.toLowerCase().includes(words));
          if (all.length === 0)
            return (
              <EmptyMessage isNew title={t("memory.none")}>
                {t("memory.noneHint")}
              </EmptyMessage>
            );
          if (found.length === 0) return <EmptyMessage title={t("memory.noOwner", { words: wanted })} />;
          return SCOPES.map((scope) => {
            const inside = found.filter((one) => one.scope === scope);
            return inside.length === 0 ? null : (
              <PageSection key={scope} title={t(`memory.scopes.${scope}`)} about={t(`memory.scopesAbout.${scope}`)}>
                <OwnerTable name={t(`memory.scopes.${scope}`)} found={inside} />
              </PageSection>
            );
          });
        }}
      </QueryResult>
      <LoadMore query={known} />
    </Page>
  );
}

function OwnerTable(props: { name: string; found: readonly Owner[] }) {
  const { t, i18n } = useTranslation();
  const workflowName = useWorkflowName();
  return (
    <Listing
      name={props.name}
      entries={props.found}
      keyOf={(one) => one.owner}
      columns={[
        {
          name: t("memory.owner"),
          cell: (one) => (
            <Link
              to="/memory/$scope/$owner"
              params={{ scope: one.scope, owner: one.owner }}
              className="hover:underline"
            >
              <bdi title={one.owner}>{one.scope === "workflow" ? workflowName(one.owner) : one.owner}</bdi>
            </Link>
          ),
        },
        { name: t("memory.keys"), isNumber: true, cell: (one) => one.keys },
        { name: t("memory.size"), isNumber: true, cell: (one) => bytes(one.bytes, i18n.language) },
        {
          name: t("memory.changed"),
          cell: (one) => (one.changedAt ? <RelativeTime at={one.changedAt} /> : null),
        },
      ]}
    />
  );
}
