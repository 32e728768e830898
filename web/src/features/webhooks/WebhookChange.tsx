import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { Dialog } from "@/components/Dialog";
import { QueryResult } from "@/components/QueryResult";
import { WebhookForm } from "./WebhookForm";
import { WebhookSaved } from "./WebhookSaved";
import { deleteWebhook, type ReadWebhook, type SavedWebhook, storedTriggers, type WebhookDraft } from "./webhookDraft";
import type { Webhook } from "./webhooks";

/** Add, change or delete a webhook, then show what was saved. `known` is null for a new one. */
export function WebhookChange({ known, onClose }: { known: Webhook | null; onClose: () => void }) {
  const client = useQueryClient();
  const [saved, setSaved] = useState<{ draft: WebhookDraft; saved: SavedWebhook } | null>(null);
  const [deleted, setDeleted] = useState<ReadWebhook | null>(null);
  const changed = (workflow: string) =>
    Promise.all(
      [["webhooks"], ["definition", workflow], ["workflow", workflow], ["revisions", workflow]].map((queryKey) =>
        client.invalidateQueries({ queryKey }),
      ),
    );
  const shared = {
    onClose,
    onSaved: (draft: WebhookDraft, made: SavedWebhook) => {
      void changed(draft.workflow);
      if (known !== null && made.secret === null && draft.path === known.path) onClose();
      else setSaved({ draft, saved: made });
    },
  };
  if (saved) return <WebhookSaved {...saved} onClose={onClose} />;
  if (known === null) return <WebhookForm {...shared} known={null} />;
  if (deleted) return <Deletion known={deleted} onDone={() => changed(known.workflowId)} onClose={onClose} />;
  return <Stored {...shared} known={known} onDelete={setDeleted} />;
}

/** The form with the trigger as the document states it now. */
function Stored(props: {
  known: Webhook;
  onSaved: (draft: WebhookDraft, saved: SavedWebhook) => void;
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

function Deletion({ known, onDone, onClose }: { known: ReadWebhook; onDone: () => unknown; onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <Confirm
      title={t("webhooks.deleteTitle", { path: known.webhook.path })}
      about={t("webhooks.deleteAbout")}
      confirmLabel={t("webhooks.delete")}
      action={() => deleteWebhook(known)}
      onDone={onDone}
      onClose={onClose}
    />
  );
}
