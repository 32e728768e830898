import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Chip } from "@/components/Chip";
import { CopyButton } from "@/components/CopyButton";
import { LargeListSearch, useSearch } from "@/components/LargeListSearch";
import { Listing, LoadMore } from "@/components/Listing";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { EmptyMessage } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { WorkflowLink } from "@/components/WorkflowLink";
import { Deliveries } from "./Deliveries";
import { WebhookChange } from "./WebhookChange";
import { WebhookDialog } from "./WebhookDialog";
import { addressOf, type Webhook, webhooks } from "./webhooks";

/** Webhooks: addresses that start a workflow when an external system calls them. */
export function WebhooksPage() {
  const { t } = useTranslation();
  const search = useSearch();
  const known = useInfiniteQuery(webhooks(search.words));
  const mayEdit = useHasRole("editor");
  // Here, not in the table: the dialog states the result also when the table has no entry any more.
  const [changed, setChanged] = useState<Webhook | "new" | null>(null);
  return (
    <Page
      title={t("webhooks.title")}
      about={t("webhooks.about")}
      actions={
        <>
          <LargeListSearch search={search} query={known} label={t("webhooks.search")} />
          {mayEdit ? (
            <Button kind="primary" onClick={() => setChanged("new")}>
              {t("webhooks.new")}
            </Button>
          ) : null}
        </>
      }
    >
      <QueryResult query={known}>
        {({ pages }) => {
          const all = pages.flatMap((page) => page.webhooks);
          if (all.length > 0) return <WebhookTable found={all} onChange={mayEdit ? setChanged : null} />;
          if (search.words) return <EmptyMessage title={t("webhooks.noMatch", { words: search.words })} />;
          return (
            <EmptyMessage isNew title={t("webhooks.none")}>
              {t("webhooks.noneHint")}
            </EmptyMessage>
          );
        }}
      </QueryResult>
      <LoadMore query={known} />
      {changed ? <WebhookChange known={changed === "new" ? null : changed} onClose={() => setChanged(null)} /> : null}
    </Page>
  );
}

function WebhookTable(props: {
  found: readonly Webhook[];
  /** null: the user may not change webhooks. */
  onChange: ((one: Webhook) => void) | null;
}) {
  const { t } = useTranslation();
  const [shown, setShown] = useState<Webhook | null>(null);
  const [heard, setHeard] = useState<Webhook | null>(null);
  const { found, onChange } = props;
  return (
    <>
      <Listing
        name={t("webhooks.title")}
        entries={found}
        keyOf={(one) => one.path}
        columns={[
          {
            name: t("webhooks.address"),
            cell: (one) => (
              <span className="flex flex-wrap items-center gap-x-2">
                <span className="font-mono text-xs font-normal wrap-anywhere">{addressOf(one)}</span>
                <CopyButton text={addressOf(one)} name={t("webhooks.addressOf", { path: one.path })} />
              </span>
            ),
          },
          {
            name: t("webhooks.starts"),
            cell: (one) => (
              <>
                <WorkflowLink id={one.workflowId} className="text-accent underline" />
                <span className="block text-xs text-ink-faint">
                  {one.event ? t("webhooks.publishes", { event: one.event }) : one.trigger}
                </span>
              </>
            ),
          },
          {
            name: t("webhooks.signature"),
            cell: (one) =>
              one.stopped !== null ? (
                <Chip look="careful" title={one.stopped}>
                  {t("webhooks.stopped")}
                </Chip>
              ) : one.signed ? (
                <Chip look="good">{t("webhooks.signed")}</Chip>
              ) : (
                <Chip look="careful" title={t("webhooks.openAbout")}>
                  {t("webhooks.open")}
                </Chip>
              ),
          },
          {
            name: t("webhooks.do"),
            isNarrow: true,
            cell: (one) => (
              <span className="flex gap-2 max-sm:flex-wrap">
                <Button onClick={() => setHeard(one)} aria-label={t("webhooks.callsOf", { path: one.path })}>
                  {t("webhooks.calls")}
                </Button>
                <Button onClick={() => setShown(one)} aria-label={t("webhooks.tryNamed", { path: one.path })}>
                  {t("webhooks.try")}
                </Button>
                {onChange ? (
                  <Button onClick={() => onChange(one)} aria-label={t("webhooks.changeTitle", { path: one.path })}>
                    {t("webhooks.change")}
                  </Button>
                ) : null}
              </span>
            ),
          },
        ]}
      />
      {heard ? <Deliveries webhook={heard} onClose={() => setHeard(null)} /> : null}
      {shown ? <WebhookDialog webhook={shown} onClose={() => setShown(null)} /> : null}
    </>
  );
}
