import { Tag } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { WorkflowEntry } from "@/api/views";
import { Button } from "@/components/Button";
import { isDraft } from "../workflows/versionNames";
import { PublishDialog } from "./PublishDialog";

/** Whether the revision on the canvas runs by id, or another one does. */
export function PublishedState({ saved }: { saved: WorkflowEntry }) {
  const { t } = useTranslation();
  if (!saved.published) return null;
  const { name } = saved.published;
  return isDraft(saved) ? (
    <span className="text-waiting wrap-anywhere"> · {t("versions.draftBeside", { name })}</span>
  ) : (
    <span className="text-done wrap-anywhere"> · {t("versions.publishedAs", { name })}</span>
  );
}

/** Publish the revision on the canvas, once it is saved and has no errors. */
export function PublishButton(props: { saved: WorkflowEntry; isChanged: boolean; hasErrors: boolean }) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  const { saved, isChanged, hasErrors } = props;
  const isPublished = saved.published?.revision === saved.revision;
  return (
    <>
      <Button
        onClick={() => setOpen(true)}
        disabled={isChanged || hasErrors || isPublished}
        title={isChanged ? t("versions.saveFirst") : hasErrors ? t("editor.mendFirst") : t("versions.publishTitle")}
      >
        <Tag className="size-4" aria-hidden /> <span className="max-lg:sr-only">{t("versions.publish")}</span>
      </Button>
      {isOpen ? <PublishDialog entry={saved} onClose={() => setOpen(false)} /> : null}
    </>
  );
}
