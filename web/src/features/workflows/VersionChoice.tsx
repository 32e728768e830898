import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { definition, workflow } from "@/api/queries";
import { LabelledField } from "@/components/LabelledField";
import { useHasRole } from "@/components/useHasRole";

/** What a start runs: the published version, or the draft after it if an editor chooses it. */
export function useVersionToRun(id: string, prefersDraft: boolean) {
  const mayDesign = useHasRole("editor");
  const saved = useQuery(workflow(id));
  const [choice, choose] = useState<"draft" | "published">(prefersDraft ? "draft" : "published");
  const entry = saved.data?.value;
  const published = entry?.published ?? null;
  const draft = published && entry && mayDesign && entry.revision > published.revision ? entry.revision : null;
  const isDraft = draft !== null && choice === "draft";
  const shown = isDraft ? `${id}@${draft}` : published ? `${id}@${published.revision}` : id;
  const known = useQuery({ ...definition(shown), enabled: saved.isSuccess });
  return {
    error: saved.error ?? known.error,
    definition: known.data,
    /** The reference to start. */
    reference: isDraft ? shown : id,
    choice: published && draft !== null ? { published, draft, isDraft, choose } : null,
  };
}

type Choice = NonNullable<ReturnType<typeof useVersionToRun>["choice"]>;

/** Select the published version or the draft. */
export function VersionChoice({ published, draft, isDraft, choose }: Choice) {
  const { t } = useTranslation();
  return (
    <LabelledField name={t("versions.run")}>
      {(its) => (
        <select
          {...its}
          value={isDraft ? "draft" : "published"}
          onChange={(event) => choose(event.target.value === "draft" ? "draft" : "published")}
        >
          <option value="published">{t("versions.runPublished", { name: published.name })}</option>
          <option value="draft">{t("versions.runDraft", { revision: draft })}</option>
        </select>
      )}
    </LabelledField>
  );
}
