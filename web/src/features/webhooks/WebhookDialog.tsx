import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import type { Json } from "@/api/views";
import { Button } from "@/components/Button";
import { CopyButton } from "@/components/CopyButton";
import { Dialog } from "@/components/Dialog";
import { JsonField, jsonIn } from "@/components/JsonField";
import { ErrorMessage } from "@/components/StatusMessage";
import { addressOf, curlOf, type TriedWebhook, tryWebhook, type Webhook } from "./webhooks";

/** How to call a webhook, with a form to send one test call. */
export function WebhookDialog(props: { webhook: Webhook; onClose: () => void }) {
  const { t } = useTranslation();
  const one = props.webhook;
  const [text, setText] = useState('{\n  "order": 12\n}');
  const data = jsonIn(text);
  const call = useMutation<TriedWebhook, ApiError, Json>({ mutationFn: (given) => tryWebhook(one, given) });
  const curl = curlOf(one, addressOf(one));
  return (
    <Dialog
      open
      wide
      onClose={props.onClose}
      title={t("webhooks.tryTitle", { path: one.path })}
      about={t("webhooks.tryAbout")}
    >
      <JsonField name={t("webhooks.body")} text={text} onChange={setText} rows={5} />
      <div className="mt-3 flex flex-wrap items-center gap-3">
        <Button
          kind="primary"
          disabled={data === undefined || call.isPending}
          onClick={() => call.mutate(data ?? null)}
        >
          {t("webhooks.call")}
        </Button>
        <div aria-live="polite">{call.data ? <TestOutcome result={call.data} /> : null}</div>
      </div>
      {call.isError ? (
        <div className="mt-3">
          <ErrorMessage error={call.error} />
        </div>
      ) : null}
      <section className="mt-6">
        <div className="flex items-center gap-2">
          <h3 className="font-semibold">{t("webhooks.fromOutside")}</h3>
          <CopyButton text={curl} name={t("webhooks.fromOutside")} />
        </div>
        <p className="mb-1 text-ink-soft">{t(one.signed ? "webhooks.signedAbout" : "webhooks.openAbout")}</p>
        <pre className="rounded-md bg-sunken p-3 font-mono text-xs wrap-anywhere whitespace-pre-wrap">{curl}</pre>
      </section>
    </Dialog>
  );
}

function TestOutcome({ result }: { result: TriedWebhook }) {
  const { t } = useTranslation();
  if (!result.accepted) return <span className="text-waiting">{t("webhooks.notAccepted")}</span>;
  const execution = result.started ?? result.delivered[0];
  return (
    <span className="flex flex-wrap gap-2 text-done">
      {t(result.started ? "webhooks.started" : "webhooks.published", { count: result.delivered.length })}
      {execution ? (
        <Link to="/executions/$id" params={{ id: execution }} className="text-accent underline">
          {t("webhooks.open_execution")}
        </Link>
      ) : null}
    </span>
  );
}
