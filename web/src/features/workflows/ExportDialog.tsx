/** Export a workflow as a picture or as a document in a dialect; features that the dialect lacks are listed first. */

import { useQuery } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { apiRequest, type Problem } from "@/api/http";
import { definition as savedDefinition } from "@/api/queries";
import type { Definition, JsonObject } from "@/api/views";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { DialogActions } from "@/components/DialogActions";
import { ErrorMessage, Loading, ProblemList } from "@/components/StatusMessage";
import { pictureOf } from "@/graph/model/picture";
import { pageInk, renderPng, renderSvg } from "@/graph/render/svg";
import { textIn } from "@/i18n";

const PICTURES = ["svg", "png"] as const;
const DIALECTS = ["native", "graph", "steps", "rows"] as const;
const DRAWN = { mermaid: "mmd", bpmn: "bpmn" } as const;
const FORMATS = [...PICTURES, "yaml", ...DIALECTS, "mermaid", "bpmn"] as const;
type Format = (typeof FORMATS)[number];

interface Props {
  id: string;
  /** The definition on the screen; absent: the saved one. Documents are always exported from the saved definition. */
  shown?: Definition;
  isChanged?: boolean;
  onClose: () => void;
}

export default function ExportDialog({ id, shown, isChanged = false, onClose }: Props) {
  const { t, i18n } = useTranslation();
  const [format, choose] = useState<Format>("svg");
  const [failed, fail] = useState<unknown>(null);
  const isPicture = format === "svg" || format === "png";
  const native = useQuery({ ...savedDefinition(id), enabled: shown === undefined });
  const written = useQuery({
    queryKey: ["written", id, format],
    queryFn: ({ signal }) =>
      apiRequest<{ document: JsonObject; losses: Problem[] } | string>(
        `/api/workflows/${encodeURIComponent(id)}?${format === "yaml" ? "dialect=native&format=yaml" : `dialect=${format}`}`,
        { signal },
      ),
    enabled: !isPicture,
    retry: false,
    staleTime: 0,
  });
  const definition = shown ?? native.data;
  const exported = isPicture ? null : written.data;
  const losses = exported && typeof exported === "object" ? exported.losses : [];
  const why = failed ?? (isPicture ? native.error : written.error);
  const isReady = isPicture ? definition !== undefined : exported !== undefined && exported !== null;

  const take = async () => {
    fail(null);
    try {
      if (!isPicture) {
        const text = typeof exported === "string" ? exported : JSON.stringify(exported?.document, null, 2);
        download(new Blob([text], { type: "text/plain" }), `${id}.${endingOf(format)}`);
      } else if (definition) {
        const name = textIn(definition.name, i18n.language, id);
        const drawing = renderSvg(pictureOf(definition, i18n.language, t), pageInk(), name, (type) =>
          t(`node.${type}`, type),
        );
        const made = format === "png" ? await renderPng(drawing) : new Blob([drawing.text], { type: "image/svg+xml" });
        download(made, `${id}.${format}`);
      }
      onClose();
    } catch (problem) {
      fail(problem);
    }
  };
  return (
    <Dialog open onClose={onClose} title={t("export.title")} about={t("export.about")}>
      <fieldset className="grid gap-1 sm:grid-cols-2">
        <legend className="sr-only">{t("export.as")}</legend>
        {FORMATS.map((one) => (
          <label
            key={one}
            className="flex min-h-10 cursor-pointer items-center gap-2.5 rounded-md border border-line px-3 py-1.5 has-checked:border-accent has-checked:bg-accent-soft has-focus-visible:outline-2 has-focus-visible:outline-offset-2 has-focus-visible:outline-accent"
          >
            <input
              type="radio"
              name="format"
              checked={one === format}
              onChange={() => choose(one)}
              className="size-4"
            />
            <span>
              <span className="font-medium">{t(`export.${one}`)}</span>
              <span className="block text-xs text-ink-soft">{t(`export.${one}About`)}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <div className="mt-3 space-y-2" aria-live="polite">
        {why ? <ErrorMessage error={why} /> : null}
        {!isPicture && isChanged ? <p className="text-waiting">{t("export.saved")}</p> : null}
        {!isPicture && written.isFetching ? <Loading /> : null}
        {losses.length > 0 ? (
          <section>
            <h3 className="font-medium text-waiting">{t("export.losses", { count: losses.length })}</h3>
            <ProblemList problems={losses} />
          </section>
        ) : null}
        {!isPicture && isReady && (format === "yaml" || typeof exported === "object") && losses.length === 0 ? (
          <p className="text-done">{t("export.whole")}</p>
        ) : null}
      </div>
      <DialogActions onClose={onClose}>
        <Button kind="primary" onClick={() => void take()} disabled={!isReady}>
          <Download className="size-4" aria-hidden /> {t("export.take")}
        </Button>
      </DialogActions>
    </Dialog>
  );
}

function endingOf(format: Format): string {
  if (format === "yaml") return "yaml";
  return format === "mermaid" || format === "bpmn" ? DRAWN[format] : `${format}.json`;
}

/** Download data that the page created. */
function download(made: Blob, name: string): void {
  const address = URL.createObjectURL(made);
  const link = document.createElement("a");
  link.href = address;
  link.download = name.replace(/[^\w.-]+/g, "-");
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
