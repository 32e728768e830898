import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { QueryResult } from "@/components/QueryResult";
import { WebhookForm } from "./WebhookForm";
import { WebhookSaved } from "./WebhookSaved";
import { deleteWebhook, draftOfWebhook, type SavedWebhook, storedTriggers, type WebhookDraft } from "./webhookDraft";
import type { Webhook } from "./webhooks";

/** Add, change or delete a webhook, then show what was saved. `known` is null for a new one. */
export function WebhookChange({ known, onClose }: { known: Webhook | null; onClose: () => void }) {
  const client = useQueryClient();
  const [saved, setSaved] = useState<{ draft: WebhookDraft; saved: SavedWebhook } | null>(null);
  const [isDeleting, setDeleting] = useState(false);
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
  if (known === null) return <WebhookForm {...shared} known={null} draft={null} />;
  if (isDeleting) return <Deletion known={known} onDone={() => changed(known.workflowId)} onClose={onClose} />;
  return <Stored {...shared} known={known} onDelete={() => setDeleting(true)} />;
}

/** The form with the trigger as the document states it now. */
function Stored(props: {
  known: Webhook;
  onSaved: (draft: WebhookDraft, saved: SavedWebhook) => void;
  onDelete: () => void;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const { onDelete, ...shared } = props;
  const stored = useQuery(storedTriggers(props.known.workflowId));
  return (
    <QueryResult query={stored}>
      {(found) => (
        <WebhookForm {...shared} draft={draftOfWebhook(props.known, found)}>
          <Button kind="danger" onClick={onDelete}>
            {t("webhooks.delete")}
          </Button>
        </WebhookForm>
      )}
    </QueryResult>
  );
}

function Deletion({ known, onDone, onClose }: { known: Webhook; onDone: () => unknown; onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <Confirm
      title={t("webhooks.deleteTitle", { path: known.path })}
      about={t("webhooks.deleteAbout")}
      confirmLabel={t("webhooks.delete")}
      action={() => deleteWebhook(known)}
      onDone={onDone}
      onClose={onClose}
    />
  );
}
