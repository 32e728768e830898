import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { workflow } from "@/api/queries";
import { CopyButton } from "@/components/CopyButton";
import { Dialog } from "@/components/Dialog";
import { isDraft } from "@/features/workflows/versionNames";
import type { SavedWebhook } from "./webhookDraft";
import { addressOf } from "./webhooks";

export type Change = "new" | "changed" | "deleted";

/** What was changed: the URL and the generated secret, which is shown this once; and what is not in effect yet. */
export function WebhookSaved(props: {
  change: Change;
  workflowId: string;
  path: string;
  saved: SavedWebhook;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const { change, workflowId, path, saved } = props;
  const found = useQuery(workflow(workflowId)).data?.value;
  return (
    <Dialog
      open
      onClose={props.onClose}
      title={t(change === "deleted" ? "webhooks.deletedTitle" : "webhooks.savedTitle", { path })}
    >
      {change === "deleted" ? null : (
        <dl className="space-y-3">
          <Copied name={t("webhooks.address")} text={addressOf({ address: `/api/webhooks/${path}` })} />
          {saved.secret ? (
            <Copied name={t("webhooks.secretOnce", { name: saved.secret.name })} text={saved.secret.value} />
          ) : null}
        </dl>
      )}
      {found?.published && isDraft(found) ? (
        <p role="status" className="mt-4 rounded-md bg-waiting-soft p-3 text-waiting first:mt-0">
          {t(`webhooks.notInEffect.${change}`, { name: found.published.name })}{" "}
          <Link to="/workflows/$id" params={{ id: workflowId }} className="underline">
            {t("webhooks.openWorkflow")}
          </Link>
        </p>
      ) : null}
      {saved.former ? (
        <p className="mt-4 text-ink-soft first:mt-0">
          {t(`webhooks.former.${saved.former.state}`, { name: saved.former.name })}
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
