import { useMutation, useQuery } from "@tanstack/react-query";
import { Radio } from "lucide-react";
import { useTranslation } from "react-i18next";
import { amount } from "@/components/amounts";
import { Button } from "@/components/Button";
import { Chip } from "@/components/Chip";
import { PageSection } from "@/components/DescriptionList";
import { ErrorDetail } from "@/components/ErrorDetail";
import { Listing } from "@/components/Listing";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { EmptyMessage, ErrorMessage } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { ConnectCards } from "./ConnectCards";
import { Keys } from "./Keys";
import { type Model, type ModelPing, type Models, models, type Provider, ping } from "./models";

/** The models with uses, prices and keys, and a check whether they respond. */
export function ModelsPage() {
  const { t } = useTranslation();
  const known = useQuery(models());
  const mayPing = useHasRole("admin");
  const maySeeKeys = useHasRole("operator");
  const asked = useMutation({ mutationFn: ping });
  return (
    <Page
      title={t("models.title")}
      about={t("models.about")}
      actions={
        mayPing ? (
          <Button onClick={() => asked.mutate()} disabled={asked.isPending} title={t("models.pingAbout")}>
            <Radio className="size-4" aria-hidden /> {t(asked.isPending ? "models.pinging" : "models.ping")}
          </Button>
        ) : null
      }
    >
      {asked.isError ? (
        <div className="mb-3">
          <ErrorMessage error={asked.error} />
        </div>
      ) : null}
      <QueryResult query={known}>
        {(all) => (
          <>
            {mayPing ? <ConnectCards models={all} /> : null}
            <PingResult all={all} pinged={asked.data} />
          </>
        )}
      </QueryResult>
      {maySeeKeys ? <Keys /> : null}
    </Page>
  );
}

function PingResult({ all, pinged }: { all: Models; pinged: Map<string, ModelPing> | undefined }) {
  const { t } = useTranslation();
  return (
    <>
      {all.forEveryAgent && all.default ? (
        <p className="my-4 rounded-md border border-waiting/40 bg-waiting-soft p-3">
          {t(all.default === "scripted" ? "models.onlyScripted" : "models.forEveryAgent", { name: all.default })}
        </p>
      ) : null}
      <PageSection title={t("models.models")}>
        <ModelTable found={all.models} usual={all.default} pinged={pinged} />
        <Prices all={all} />
      </PageSection>
      <PageSection title={t("models.providers")} about={t("models.providersAbout")}>
        {all.providers.length === 0 ? (
          <EmptyMessage title={t("models.noProvider")}>{t("models.noProviderHint")}</EmptyMessage>
        ) : (
          <ProviderTable found={all.providers} />
        )}
      </PageSection>
    </>
  );
}

/** The source of the prices, and how to set one for a model without a price. */
function Prices({ all }: { all: Models }) {
  const { t, i18n } = useTranslation();
  const { name, version, installed } = all.prices;
  const unknown = all.models.find((one) => !one.scripted && one.priceFrom === null);
  const day = installed
    ? new Date(`${installed}T00:00:00Z`).toLocaleDateString(i18n.language, { timeZone: "UTC", dateStyle: "medium" })
    : null;
  return (
    <>
      <p className="mt-2 text-sm text-ink-soft">
        {day ? t("models.priceList", { name, version, day }) : t("models.priceListUndated", { name, version })}
      </p>
      {unknown ? (
        <div className="mt-3 rounded-md border border-waiting/40 bg-waiting-soft p-3">
          <p>{t("models.givePrice")}</p>
          <pre className="mt-2 font-mono text-xs whitespace-pre-wrap wrap-anywhere">
            {`[prices]\n${JSON.stringify(unknown.name)} = {input = 0.50, output = 1.50}`}
          </pre>
        </div>
      ) : null}
    </>
  );
}

function ModelTable(props: {
  found: readonly Model[];
  usual: string | null;
  pinged: Map<string, ModelPing> | undefined;
}) {
  const { t, i18n } = useTranslation();
  const price = (usd: number | null) =>
    usd === null ? null : new Intl.NumberFormat(i18n.language, { style: "currency", currency: "USD" }).format(usd);
  return (
    <Listing
      name={t("models.models")}
      entries={props.found}
      keyOf={(one) => one.name}
      columns={[
        {
          name: t("models.name"),
          cell: (one) => (
            <span className="flex flex-wrap items-center gap-2">
              <span className="font-mono">{one.name}</span>
              {one.scripted ? <Chip look="careful">{t("models.scripted")}</Chip> : null}
              {one.name === props.usual ? <Chip look="accent">{t("models.usual")}</Chip> : null}
            </span>
          ),
        },
        { name: t("models.uses"), cell: (one) => one.uses.map((use) => t(`models.use.${use}`, use)).join(", ") },
        {
          name: t("models.prices"),
          cell: (one) =>
            one.scripted ? (
              t("models.free")
            ) : one.inputUsdPerMillion === null || one.outputUsdPerMillion === null ? (
              <span className="text-waiting">{t("models.noPrice")}</span>
            ) : (
              <>
                {t("models.price", { input: price(one.inputUsdPerMillion), output: price(one.outputUsdPerMillion) })}
                {one.priceFrom === "settings" ? (
                  <span className="block text-xs text-ink-faint">{t("models.ownPrice")}</span>
                ) : null}
              </>
            ),
        },
        ...(props.pinged
          ? [{ name: t("models.answers"), cell: (one: Model) => <Ping error={props.pinged?.get(one.name)} /> }]
          : []),
      ]}
    />
  );
}

function Ping({ error }: { error: ModelPing | undefined }) {
  const { t } = useTranslation();
  if (error === undefined) return null;
  if (error.ok)
    return (
      <Chip look="good">
        {t("models.answered", { seconds: error.seconds == null ? "?" : amount(error.seconds, 2) })}
      </Chip>
    );
  const why = error.failure as { code?: string; message?: string; hint?: string } | null | undefined;
  return (
    <span>
      <Chip look="bad">{why?.code ?? t("models.silent")}</Chip>
      <ErrorDetail code={why?.code ?? ""} message={why?.message ?? ""} hint={why?.hint ?? ""} look="text-sm" />
    </span>
  );
}

function ProviderTable({ found }: { found: readonly Provider[] }) {
  const { t } = useTranslation();
  return (
    <Listing
      name={t("models.providers")}
      entries={found}
      keyOf={(one) => one.name}
      columns={[
        { name: t("models.provider"), cell: (one) => one.name },
        { name: t("models.kind"), cell: (one) => (one.baseUrl ? `${one.kind} (${one.baseUrl})` : one.kind) },
        {
          name: t("models.keys"),
          cell: (one) =>
            one.missing ? (
              <span className="text-failed">{one.missing}</span>
            ) : (
              <>
                {t("models.keyCount", { count: one.keys })}
                <span className="block font-mono text-xs text-ink-faint">{one.masked.join(" ")}</span>
              </>
            ),
        },
        { name: t("models.source"), cell: (one) => <code className="text-xs">{one.source}</code> },
        {
          name: t("models.pace"),
          cell: (one) =>
            [
              one.keys > 1 ? t(`models.live.strategy.${one.strategy}`) : "",
              one.interval > 0 ? t("models.interval", { seconds: one.interval }) : "",
            ]
              .filter(Boolean)
              .join(", ") || null,
        },
      ]}
    />
  );
}
