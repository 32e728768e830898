import { Download } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Definition } from "@/api/views";
import { IconButton } from "@/components/IconButton";

const ExportDialog = lazy(() => import("./ExportDialog"));

/** A button that opens the export dialog. `shown` is the definition on the screen. */
export function ExportButton(props: { id: string; name: string; shown?: Definition; isChanged?: boolean }) {
  const { t } = useTranslation();
  const [isOpen, open] = useState(false);
  const label = t("export.of", { name: props.name });
  return (
    <>
      <IconButton icon={Download} name={label} onClick={() => open(true)} />
      {isOpen ? (
        <Suspense>
          <ExportDialog
            id={props.id}
            {...(props.shown ? { shown: props.shown } : {})}
            isChanged={props.isChanged ?? false}
            onClose={() => open(false)}
          />
        </Suspense>
      ) : null}
    </>
  );
}
