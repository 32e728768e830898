import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { useHasRole } from "./useHasRole";

/** Error codes that a connected model mends. */
export const MENDED_BY_MODEL: ReadonlySet<string> = new Set([
  "model-unnamed",
  "model-unusable",
  "design-model-missing",
]);

/** The way to the page where an admin connects a model; for others, whom to ask. */
export function ConnectModel() {
  const { t } = useTranslation();
  if (!useHasRole("admin")) return <span>{t("scripted.askAdmin")}</span>;
  return (
    <Link to="/models" className="inline-flex min-h-6 items-center font-medium underline">
      {t("scripted.connect")}
    </Link>
  );
}
