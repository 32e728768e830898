import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { LabelledField } from "@/components/LabelledField";
import { moment } from "@/components/times";
import { type PlaygroundStore, usePlayground, type Version } from "./store";

const NAME_CHARS_MAX = 60;

/** The prompts that were run in this browser, with their answers. */
export function Versions({ store }: { store: PlaygroundStore }) {
  const { t, i18n } = useTranslation();
  const versions = usePlayground(store, (now) => now.versions);
  const shown = usePlayground(store, (now) => now.shown);
  if (versions.length === 0) return null;
  const nameOf = (version: Version) => {
    const text = version.draft.user.trim() || version.draft.system.trim();
    return `${moment(version.at, i18n.language)} · ${text.slice(0, NAME_CHARS_MAX)}`;
  };
  return (
    <div className="flex flex-wrap items-end gap-2">
      <div className="min-w-0 flex-1">
        <LabelledField name={t("playground.versions")} about={t("playground.versionsAbout")}>
          {(its) => (
            <select {...its} value={shown ?? ""} onChange={(event) => store.getState().restore(event.target.value)}>
              {shown === null ? <option value="">{t("playground.notRun")}</option> : null}
              {versions.map((one) => (
                <option key={one.id} value={one.id}>
                  {nameOf(one)}
                </option>
              ))}
            </select>
          )}
        </LabelledField>
      </div>
      <Button onClick={() => store.getState().clear()} className="mb-5">
        {t("playground.clear")}
      </Button>
    </div>
  );
}
