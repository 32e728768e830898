import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { CopyButton } from "@/components/CopyButton";
import { Dialog } from "@/components/Dialog";
import type { SavedWebhook, WebhookDraft } from "./webhookDraft";
import { addressOf, webhookAt } from "./webhooks";

/** The URL of a saved webhook, and its generated secret, which is shown this once. */
export function WebhookSaved(props: { draft: WebhookDraft; saved: SavedWebhook; onClose: () => void }) {
  const { t } = useTranslation();
  const { draft, saved } = props;
  const path = draft.path.trim();
  const found = useQuery(webhookAt(draft.workflow, path));
  return (
    <Dialog open onClose={props.onClose} title={t("webhooks.savedTitle", { path })}>
      <dl className="space-y-3">
        <Copied name={t("webhooks.address")} text={addressOf({ address: `/api/webhooks/${path}` })} />
        {saved.secret ? (
          <Copied name={t("webhooks.secretOnce", { name: saved.secret.name })} text={saved.secret.value} />
        ) : null}
      </dl>
      {found.data === null ? (
        <p role="status" className="mt-4 rounded-md bg-waiting-soft p-3 text-waiting">
          {t("webhooks.notInEffect")}{" "}
          <Link to="/workflows/$id" params={{ id: draft.workflow }} className="underline">
            {t("webhooks.openWorkflow")}
          </Link>
        </p>
      ) : null}
    </Dialog>
  );
}

function Copied({ name, text }: { name: string; text: string }) {
  return (
    <div>
      <dt className="font-medium">{name}</dt>
      <dd className="flex items-center gap-2">
        <code className="wrap-anywhere">{text}</code>
        <CopyButton text={text} name={name} />
      </dd>
    </div>
  );
}
