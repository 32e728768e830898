/** Toolbar of the canvas, for use without a keyboard. */

import { Panel } from "@xyflow/react";
import { Keyboard, LoaderCircle, Plus, Search, Sparkles } from "lucide-react";
import { useTranslation } from "react-i18next";
import { IconButton } from "@/components/IconButton";

export function CanvasTools(props: {
  isTidying: boolean;
  onAdd: () => void;
  onFind: () => void;
  onTidy: () => void;
  onHelp: () => void;
}) {
  const { t } = useTranslation();
  const tidying = props.isTidying;
  return (
    <Panel position="top-right" className="!m-2.5">
      <div
        role="toolbar"
        aria-label={t("canvas.tools")}
        className="flex rounded-md border border-line bg-surface p-0.5"
      >
        <IconButton icon={Plus} name={t("canvas.add")} keys="A" onClick={props.onAdd} />
        <IconButton icon={Search} name={t("canvas.find")} keys="/" onClick={props.onFind} />
        <IconButton
          icon={tidying ? LoaderCircle : Sparkles}
          isBusy={tidying}
          disabled={tidying}
          name={t(tidying ? "canvas.tidying" : "canvas.tidy")}
          keys="T"
          onClick={props.onTidy}
        />
        <IconButton icon={Keyboard} name={t("shortcut.title")} keys="?" onClick={props.onHelp} />
      </div>
    </Panel>
  );
}
