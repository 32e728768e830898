import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { RefreshCw } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Chip } from "@/components/Chip";
import { Dialog } from "@/components/Dialog";
import { ErrorDetail } from "@/components/ErrorDetail";
import { Listing } from "@/components/Listing";
import { QueryResult } from "@/components/QueryResult";
import { RelativeTime } from "@/components/RelativeTime";
import { bytes } from "../memory/memory";
import { type Delivery, deliveries, type Webhook } from "./webhooks";

const LOOKS = { started: "good", published: "good", ignored: "plain", failed: "bad", refused: "careful" } as const;

/** The outcomes of the latest calls of a webhook. */
export function Deliveries(props: { webhook: Webhook; onClose: () => void }) {
  const { t } = useTranslation();
  const known = useQuery(deliveries(props.webhook));
  return (
    <Dialog
      open
      wide
      onClose={props.onClose}
      title={t("webhooks.callsOf", { path: props.webhook.path })}
      about={t("webhooks.callsAbout")}
    >
      <div className="mb-2 flex justify-end">
        <Button onClick={() => void known.refetch()} disabled={known.isFetching}>
          <RefreshCw className="size-4" aria-hidden /> {t("webhooks.refresh")}
        </Button>
      </div>
      <QueryResult query={known}>
        {(found) =>
          found.length === 0 ? <p className="text-ink-soft">{t("webhooks.noCalls")}</p> : <Calls found={found} />
        }
      </QueryResult>
    </Dialog>
  );
}

function Calls({ found }: { found: readonly Delivery[] }) {
  const { t, i18n } = useTranslation();
  return (
    <Listing
      name={t("webhooks.calls")}
      entries={found}
      keyOf={(one) => `${one.at} ${one.id} ${one.outcome}`}
      columns={[
        { name: t("webhooks.when"), cell: (one) => <RelativeTime at={one.at} /> },
        {
          name: t("webhooks.came"),
          cell: (one) => (
            <>
              <Chip look={LOOKS[one.outcome]}>{t(`webhooks.outcomes.${one.outcome}`)}</Chip>{" "}
              <DeliveryOutcome one={one} />
            </>
          ),
        },
        {
          name: t("webhooks.signatureOf"),
          cell: (one) => (one.signed ? t("webhooks.signed") : t("webhooks.unsigned")),
        },
        { name: t("webhooks.size"), isNumber: true, cell: (one) => bytes(one.bytes, i18n.language) },
        {
          name: t("webhooks.delivery"),
          cell: (one) => (one.id ? <bdi className="font-mono text-xs wrap-anywhere">{one.id}</bdi> : null),
        },
      ]}
    />
  );
}

function DeliveryOutcome({ one }: { one: Delivery }) {
  const { t } = useTranslation();
  if (one.executionId)
    return (
      <Link to="/executions/$id" params={{ id: one.executionId }} className="text-accent underline">
        {t("webhooks.open_execution")}
      </Link>
    );
  if (one.outcome === "refused") return <span className="text-ink-soft">{t("webhooks.refusedAbout")}</span>;
  return one.why || one.code ? (
    <ErrorDetail code={one.code ?? ""} message={one.why || (one.code ?? "")} hint={one.hint} />
  ) : null;
}
