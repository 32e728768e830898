import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { apiRequest } from "@/api/http";
import { ready } from "@/api/queries";
import type { Schemas } from "@/api/views";
import { Chip } from "@/components/Chip";
import { Card, DescriptionList, PageSection } from "@/components/DescriptionList";
import { Listing } from "@/components/Listing";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { SearchBox } from "@/components/SearchBox";
import { EmptyMessage } from "@/components/StatusMessage";
import { Workers } from "./Workers";

type Setting = Schemas["SettingView"];

const settings = queryOptions({
  queryKey: ["settings"],
  queryFn: ({ signal }) => apiRequest<Schemas["SettingsView"]>("/api/settings", { signal }),
});

/** The settings and state of the server. They are changed where the server is started, not here. */
export function SettingsPage() {
  const { t } = useTranslation();
  const known = useQuery(settings);
  const readyNow = useQuery({ ...ready, refetchInterval: 10_000 });
  return (
    <Page title={t("settings.title")} about={t("settings.about")}>
      <QueryResult query={known}>
        {(reply) => (
          <>
            <PageSection title={t("settings.server")}>
              <Card>
                <DescriptionList
                  facts={{
                    [t("settings.version")]: reply.version,
                    [t("settings.store")]: <code className="wrap-anywhere">{reply.store}</code>,
                    ...(readyNow.data ? State(readyNow.data, t) : {}),
                  }}
                />
              </Card>
            </PageSection>
            <Workers />
            <PageSection title={t("settings.all")}>
              <Table all={reply.settings} />
            </PageSection>
          </>
        )}
      </QueryResult>
    </Page>
  );
}

function State(reply: Schemas["ReadyView"], t: (word: string) => string) {
  const isReady = reply.status === "ready";
  return {
    [t("settings.ready")]: (
      <Chip look={isReady ? "good" : "bad"}>{isReady ? t("settings.isReady") : t("settings.unready")}</Chip>
    ),
    [t("settings.answers")]: reply.store ? t("settings.yes") : t("settings.no"),
    [t("settings.room")]: reply.room ? t("settings.enough") : t("settings.little"),
    [t("settings.leader")]: reply.leader === "here" ? t("settings.here") : t("settings.standby"),
  };
}

function Table({ all }: { all: readonly Setting[] }) {
  const { t } = useTranslation();
  const [wanted, setWanted] = useState("");
  const [onlySet, setOnlySet] = useState(false);
  const words = wanted.trim().toLowerCase();
  const found = all.filter(
    (one) =>
      (!onlySet || one.source !== "default") && `${one.name} ${formatValue(one.value)}`.toLowerCase().includes(words),
  );
  return (
    <>
      <div className="mb-3 flex flex-wrap items-center gap-4">
        <SearchBox value={wanted} onChange={setWanted} label={t("settings.search")} />
        <label className="flex h-8 items-center gap-2">
          <input
            type="checkbox"
            className="size-4"
            checked={onlySet}
            onChange={(event) => setOnlySet(event.target.checked)}
          />
          {t("settings.onlySet")}
        </label>
      </div>
      {found.length === 0 ? <EmptyMessage title={t("settings.noMatch")} /> : null}
      <Listing
        name={t("settings.all")}
        entries={found}
        keyOf={(one) => one.name}
        columns={[
          { name: t("settings.name"), cell: (one) => <code>{one.name}</code> },
          {
            name: t("settings.value"),
            cell: (one) => (
              <code className="block text-xs whitespace-pre-wrap wrap-anywhere">{formatValue(one.value)}</code>
            ),
          },
          {
            name: t("settings.source"),
            cell: (one) =>
              one.source === "default" ? (
                <span className="text-ink-faint">{t("settings.default")}</span>
              ) : (
                <code className="text-xs wrap-anywhere">{one.source}</code>
              ),
          },
        ]}
      />
    </>
  );
}

function formatValue(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
