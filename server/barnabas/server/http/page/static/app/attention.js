// What needs somebody's attention.
import { h } from "./dom.js";
import { badge } from "./parts.js";
import { to } from "./router.js";

const KINDS = {
  offline_directory: ["bad", "offline"],
  offline_partition: ["bad", "offline"],
  uncleanable_partition: ["bad", "uncleanable"],
  loses_unread: ["warn", "lost unread"],
  stuck_transaction: ["warn", "transaction"],
};

/** The list of what needs attention, each with a way to it. */
export function attentionList(list) {
  return h("ul", { class: "attention" }, list.map(entry));
}

function entry(each) {
  const [kind, word] = KINDS[each.kind] ?? ["warn", each.kind.replaceAll("_", " ")];
  return h("li", {}, badge(word, kind), h("p", {}, each.says, " ", way(each)));
}

function way(each) {
  if (each.topic !== null && each.topic !== undefined) {
    const hasPartition = each.partition !== null && each.partition !== undefined;
    const place = hasPartition ? ["topics", each.topic, each.partition] : ["topics", each.topic];
    return h("a", { href: to(place) }, hasPartition ? `${each.topic}-${each.partition}` : each.topic);
  }
  if (each.group) return h("a", { href: to(["group"], { id: each.group }) }, each.group);
  if (each.transactional_id) return h("a", { href: "#/transactions" }, each.transactional_id);
  return null;
}
