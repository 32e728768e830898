import { useQueryClient } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Chip } from "@/components/Chip";
import { Confirm } from "@/components/Confirm";
import { PageSection } from "@/components/DescriptionList";
import { Listing } from "@/components/Listing";
import { EmptyMessage } from "@/components/StatusMessage";
import { DestinationDialog } from "./DestinationDialog";
import { type Address, deleteDestination } from "./notifications";

/** Where notices are sent. Those of the settings are changed there; an admin adds, changes and deletes the others. */
export function Destinations({ found }: { found: readonly Address[] }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [changing, setChanging] = useState<Address | "new" | null>(null);
  const [deleting, setDeleting] = useState<Address | null>(null);
  const again = () => client.invalidateQueries({ queryKey: ["notifications"] });
  return (
    <PageSection
      title={t("notifications.addresses")}
      actions={
        <Button kind="primary" onClick={() => setChanging("new")}>
          <Plus className="size-4" aria-hidden /> {t("notifications.add")}
        </Button>
      }
    >
      {found.length === 0 ? (
        <EmptyMessage isNew title={t("notifications.none")}>
          {t("notifications.noneHint")}
        </EmptyMessage>
      ) : (
        <DestinationList found={found} onChange={setChanging} onDelete={setDeleting} />
      )}
      {changing ? (
        <DestinationDialog
          known={changing === "new" ? null : changing}
          onClose={() => setChanging(null)}
          onDone={() => {
            setChanging(null);
            void again();
          }}
        />
      ) : null}
      {deleting ? (
        <Confirm
          title={t("notifications.deleteNamed", { name: deleting.name })}
          about={t("notifications.deleteAbout")}
          confirmLabel={t("notifications.delete")}
          action={() => deleteDestination(deleting).then(again)}
          onClose={() => setDeleting(null)}
        />
      ) : null}
    </PageSection>
  );
}

function DestinationList(props: {
  found: readonly Address[];
  onChange: (one: Address) => void;
  onDelete: (one: Address) => void;
}) {
  const { t } = useTranslation();
  return (
    <Listing
      name={t("notifications.addresses")}
      entries={props.found}
      keyOf={(one) => `${one.source} ${one.name}`}
      columns={[
        {
          name: t("notifications.name"),
          cell: (one) => (
            <>
              {one.name} {one.inUse ? null : <Chip look="bad">{t("notifications.replaced")}</Chip>}
            </>
          ),
        },
        {
          name: t("notifications.format"),
          cell: (one) => (
            <>
              {t(`notifications.formats.${one.format}`)}
              {one.signed ? <span className="block text-xs text-ink-faint">{t("notifications.signed")}</span> : null}
              {one.answerLinks ? (
                <span className="block text-xs text-ink-faint">{t("notifications.answerLinks")}</span>
              ) : null}
            </>
          ),
        },
        {
          name: t("notifications.url"),
          cell: (one) => (one.url ? <span className="font-mono text-xs">{one.url}</span> : one.recipients.join(", ")),
        },
        {
          name: t("notifications.events"),
          cell: (one) => one.events.map((event) => t(`notifications.kinds.${event}`, event)).join(", "),
        },
        { name: t("notifications.workflows"), cell: (one) => one.workflows.join(", ") },
        {
          name: t("notifications.do"),
          cell: (one) =>
            one.source === "app" ? (
              <span className="flex gap-1">
                <Button
                  onClick={() => props.onChange(one)}
                  aria-label={t("notifications.changeNamed", { name: one.name })}
                >
                  {t("notifications.change")}
                </Button>
                <Button
                  kind="danger"
                  onClick={() => props.onDelete(one)}
                  aria-label={t("notifications.deleteLabel", { name: one.name })}
                >
                  {t("notifications.delete")}
                </Button>
              </span>
            ) : (
              <span className="text-xs text-ink-faint">{t("notifications.inSettings", { source: one.source })}</span>
            ),
        },
      ]}
    />
  );
}
