// Finds what a screen reader or weak eyes would stumble over, with axe.
import type { Page } from "@playwright/test";
import axe from "axe-core";

interface Finding {
  id: string;
  nodes: { html: string; failureSummary?: string }[];
}

/** The page's faults by WCAG 2.1 A and AA, each in a line. */
export async function faults(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const found = await page.evaluate(async () => {
    const { axe } = window as unknown as {
      axe: { run: (root: Document, options: object) => Promise<{ violations: Finding[] }> };
    };
    const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"];
    return (await axe.run(document, { runOnly: tags })).violations;
  });
  return found.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.html} ${node.failureSummary ?? ""}`),
  );
}
