import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { workflow } from "@/api/queries";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { Dialog } from "@/components/Dialog";
import { QueryResult } from "@/components/QueryResult";
import { isDraft } from "@/features/workflows/versionNames";
import { WebhookForm } from "./WebhookForm";
import { type Change, WebhookSaved } from "./WebhookSaved";
import { deleteWebhook, type ReadWebhook, type SavedWebhook, storedTriggers, type WebhookDraft } from "./webhookDraft";
import type { Webhook } from "./webhooks";

interface Result {
  change: Change;
  workflowId: string;
  path: string;
  saved: SavedWebhook;
}

/** Add, change or delete a webhook, then show what is to be known of it. `known` is null for a new one. */
export function WebhookChange({ known, onClose }: { known: Webhook | null; onClose: () => void }) {
  const client = useQueryClient();
  const [result, setResult] = useState<Result | null>(null);
  const [deleted, setDeleted] = useState<ReadWebhook | null>(null);
  const finish = async (made: Result) => {
    const id = made.workflowId;
    await Promise.all(
      [["webhooks"], ["definition", id], ["workflow", id], ["revisions", id]].map((queryKey) =>
        client.invalidateQueries({ queryKey }),
      ),
    );
    const now = await client.fetchQuery(workflow(id)).catch(() => null); // The dialog of the result reads it again.
    const isQuiet = made.saved.secret === null && made.saved.former === null && now !== null && !isDraft(now.value);
    if (isQuiet && (made.change === "deleted" || (made.change === "changed" && made.path === known?.path))) onClose();
    else setResult(made);
  };
  const shared = {
    onClose,
    onSaved: (draft: WebhookDraft, saved: SavedWebhook) =>
      finish({ change: known ? "changed" : "new", workflowId: draft.workflow, path: draft.path.trim(), saved }),
  };
  if (result) return <WebhookSaved {...result} onClose={onClose} />;
  if (known === null) return <WebhookForm {...shared} known={null} />;
  if (deleted)
    return (
      <Deletion
        known={deleted}
        onDone={(saved) => finish({ change: "deleted", workflowId: known.workflowId, path: known.path, saved })}
        onClose={() => setDeleted(null)}
      />
    );
  return <Stored {...shared} known={known} onDelete={setDeleted} />;
}

/** The form with the trigger as the document states it now. */
function Stored(props: {
  known: Webhook;
  onSaved: (draft: WebhookDraft, saved: SavedWebhook) => Promise<void>;
  onDelete: (known: ReadWebhook) => void;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const { onDelete, known, ...shared } = props;
  const stored = useQuery(storedTriggers(known.workflowId));
  return (
    <QueryResult query={stored}>
      {(found) =>
        found.triggers.some((one) => one.id === known.trigger) ? (
          <WebhookForm {...shared} known={{ webhook: known, stored: found }}>
            <Button kind="danger" onClick={() => onDelete({ webhook: known, stored: found })}>
              {t("webhooks.delete")}
            </Button>
          </WebhookForm>
        ) : (
          <Dialog open onClose={props.onClose} title={t("webhooks.changeTitle", { path: known.path })}>
            <p>{t("webhooks.removed")}</p>
          </Dialog>
        )
      }
    </QueryResult>
  );
}

function Deletion(props: { known: ReadWebhook; onDone: (saved: SavedWebhook) => Promise<void>; onClose: () => void }) {
  const { t } = useTranslation();
  const { known } = props;
  return (
    <Confirm
      title={t("webhooks.deleteTitle", { path: known.webhook.path })}
      about={t("webhooks.deleteAbout")}
      confirmLabel={t("webhooks.delete")}
      action={async () => props.onDone(await deleteWebhook(known))}
      onClose={props.onClose}
    />
  );
}
