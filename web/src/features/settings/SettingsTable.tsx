import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Listing } from "@/components/Listing";
import { SearchBox } from "@/components/SearchBox";
import { EmptyMessage } from "@/components/StatusMessage";
import { isChangeable, type Setting } from "./settings";

/** All settings with their values and sources. Those that take effect at once have a button. */
export function SettingsTable({ all, onChange }: { all: readonly Setting[]; onChange: (one: Setting) => void }) {
  const { t } = useTranslation();
  const [wanted, setWanted] = useState("");
  const [onlySet, setOnlySet] = useState(false);
  const [onlyNow, setOnlyNow] = useState(false);
  const words = wanted.trim().toLowerCase();
  const found = all.filter(
    (one) =>
      (!onlySet || one.source !== "default") &&
      (!onlyNow || one.effect === "now") &&
      `${one.name} ${formatValue(one.value)}`.toLowerCase().includes(words),
  );
  return (
    <>
      <div className="mb-3 flex flex-wrap items-center gap-4">
        <SearchBox value={wanted} onChange={setWanted} label={t("settings.search")} />
        <Check isOn={onlySet} onChange={setOnlySet} label={t("settings.onlySet")} />
        <Check isOn={onlyNow} onChange={setOnlyNow} label={t("settings.onlyNow")} />
      </div>
      {found.length === 0 ? <EmptyMessage title={t("settings.noMatch")} /> : null}
      <Listing
        name={t("settings.all")}
        entries={found}
        keyOf={(one) => one.name}
        columns={[
          { name: t("settings.name"), cell: (one) => <code>{one.name}</code> },
          {
            name: t("settings.value"),
            cell: (one) => (
              <code className="block text-xs whitespace-pre-wrap wrap-anywhere">{formatValue(one.value)}</code>
            ),
          },
          { name: t("settings.source"), cell: (one) => <Source one={one} /> },
          { name: t("settings.effect"), cell: (one) => <Effect one={one} onChange={onChange} /> },
        ]}
      />
    </>
  );
}

function Check(props: { isOn: boolean; onChange: (isOn: boolean) => void; label: string }) {
  return (
    <label className="flex h-8 items-center gap-2">
      <input
        type="checkbox"
        className="size-4"
        checked={props.isOn}
        onChange={(event) => props.onChange(event.target.checked)}
      />
      {props.label}
    </label>
  );
}

function Source({ one }: { one: Setting }) {
  const { t } = useTranslation();
  if (one.source === "app") return t("settings.byAdmin", { name: one.changedBy });
  if (one.source === "default") return <span className="text-ink-faint">{t("settings.default")}</span>;
  return <code className="text-xs wrap-anywhere">{one.source}</code>;
}

/** The button of a setting that can be changed here; otherwise why it cannot. */
function Effect({ one, onChange }: { one: Setting; onChange: (one: Setting) => void }) {
  const { t } = useTranslation();
  if (isChangeable(one))
    return (
      <Button onClick={() => onChange(one)} aria-label={t("settings.changeNamed", { name: one.name })}>
        {t("settings.change")}
      </Button>
    );
  return (
    <span className="text-xs text-ink-faint wrap-anywhere">
      {one.effect === "now" ? t("settings.fixed", { source: one.fixedBy }) : t("settings.restart")}
    </span>
  );
}

function formatValue(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
