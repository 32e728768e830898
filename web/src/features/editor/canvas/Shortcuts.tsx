/** List of keyboard shortcuts. */
import { useTranslation } from "react-i18next";
import { Dialog } from "@/components/Dialog";

const IS_MAC = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** The label of each is `shortcut.<name>`; translated key names are `shortcut.key.<name>`. */
type Keys = readonly (readonly [name: string, ...keys: string[]])[];

const PLACES: Readonly<Record<"canvas" | "palette" | "tree" | "anywhere", Keys>> = {
  canvas: [
    ["add", "A"],
    ["note", "N"],
    ["frame", "F"],
    ["connect", "C"],
    ["edit", "E", "{enter}"],
    ["find", "/", "{ctrl} F"],
    ["tidy", "T"],
    ["tidyInRows", "⇧ T"],
    ["fold", "G"],
    ["next", "{tab}"],
    ["move", "← ↑ → ↓"],
    ["moveFar", "⇧ ← ↑ → ↓"],
    ["all", "{ctrl} A"],
    ["none", "Esc"],
    ["box", "⇧"],
    ["copy", "{ctrl} C"],
    ["cut", "{ctrl} X"],
    ["paste", "{ctrl} V"],
    ["duplicate", "{ctrl} D"],
    ["remove", "{delete}"],
    ["menu", "⇧ F10"],
    ["outline", "O"],
    ["help", "?"],
  ],
  palette: [
    ["paletteMove", "↑ ↓"],
    ["treeName", "a–z"],
    ["paletteAdd", "{enter}"],
  ],
  tree: [
    ["treeMove", "↑ ↓"],
    ["treeTurn", "← →"],
    ["treeName", "a–z"],
    ["treePick", "{enter}"],
    ["treeAdd", "+", "{insert}"],
    ["connect", "C"],
    ["remove", "{delete}"],
  ],
  anywhere: [
    ["leave", "Esc"],
    ["save", "{ctrl} S"],
    ["start", "{ctrl} {enter}"],
    ["undo", "{ctrl} Z"],
    ["redo", "{ctrl} Y"],
  ],
};

export default function Shortcuts({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const called = (key: string) =>
    key.replaceAll(/\{(\w+)\}/g, (_, name: string) => (name === "ctrl" && IS_MAC ? "⌘" : t(`shortcut.key.${name}`)));
  return (
    <Dialog open onClose={onClose} wide title={t("shortcut.title")} about={t("shortcut.about")}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: makes the list scrollable by keyboard on a small screen */}
      <div tabIndex={0}>
        {Object.entries(PLACES).map(([place, keys]) => (
          <section key={place} aria-labelledby={`keys-${place}`} className="mb-4 last:mb-0">
            <h3 id={`keys-${place}`} className="mb-1.5 font-medium text-ink-soft">
              {t(`shortcut.${place}`)}
            </h3>
            <dl className="grid grid-cols-[1fr_auto] gap-x-6 gap-y-1.5 sm:grid-cols-[1fr_auto_1fr_auto]">
              {keys.map(([name, ...ways]) => (
                <div key={name} className="col-span-2 grid grid-cols-subgrid items-center">
                  <dt>{t(`shortcut.${name}`)}</dt>
                  <dd className="flex justify-end gap-1">
                    {ways.map((key) => (
                      <kbd
                        key={key}
                        className="rounded border border-line-strong bg-sunken px-1.5 py-0.5 font-mono text-xs whitespace-nowrap"
                      >
                        {called(key)}
                      </kbd>
                    ))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
