//! A page that one range fills: the store's own answer, with its keys made logical. Nothing is
//! merged, so no item is read but for its key.

use bytes::Bytes;
use heatsink_dynamo::json::write_string;
use heatsink_dynamo::{Error, Operation, json};
use memchr::memmem;

use super::Scatter;
use crate::Calls;
use crate::answer::{logical_page, unreadable};
use crate::collection::selection::Shown;
use crate::cursor;
use crate::query::answer::{Logical, ShardTags};
use crate::query::source::Source;
use crate::splice::Splice;

impl Scatter {
    /// Begins a Query that may be answered so; the answer, if the first range fills the page. If it
    /// does not, its rows are the first of the merge.
    ///
    /// # Errors
    /// The first error of the range, unless it is left out.
    pub(super) async fn one_page(&mut self, calls: &mut dyn Calls) -> Result<Option<Bytes>, Error> {
        let Some(limit) = self.wanted.limit.filter(|_| self.is_plain()) else { return Ok(None) };
        let round = self.next_round().round(0);
        let [call] = &*round.calls else { return Ok(None) };
        if call.target.as_ref().is_none_or(|target| target.items != limit) {
            return Ok(None);
        }
        self.opening.note_sent(&round.calls, &self.merged);
        let mut came = None;
        calls
            .round(round, &mut |stream, answer| {
                came = Some((stream, answer));
                Ok(())
            })
            .await?;
        let Some((stream, answer)) = came else { return Ok(None) };
        if let Ok(body) = &answer
            && let Some(page) = self.page(body).map_err(|_| unreadable(Operation::Query))?
        {
            return Ok(Some(page));
        }
        self.take_answer(stream, answer)?;
        Ok(None)
    }

    /// Whether the store shows of a page what the client wants to see: whole items, all of them,
    /// and a cursor wherever a page may end.
    fn is_plain(&self) -> bool {
        let Source::Ranges(ranges) = &self.wanted.source else { return false };
        let gathering = &self.wanted.gathering;
        let shape = &gathering.shape;
        ranges.streams.first().is_some_and(|(stream, _)| stream.shows_its_part())
            && gathering.fold.is_none()
            && shape.selection.filter.is_none()
            && shape.selection.seen.is_none()
            && matches!(shape.selection.shown, Shown::Whole)
            && shape.tags == ShardTags::Never
            && shape.end.is_none()
            && self.wanted.passed.is_none()
    }

    /// The client's page, if that one has more behind it: else other ranges may follow.
    fn page(&self, body: &Bytes) -> Result<Option<Bytes>, json::Malformed> {
        let table = &self.wanted.gathering.shape.table;
        let mut splice = Splice::new(body);
        if let Some(outline) = Outline::of(body)
            && let Some(keys) = self.own_keys(outline.items, outline.count)
        {
            keys.physical.iter().for_each(|key| splice.replace(key, keys.logical.clone()));
            cursor::logical(table, outline.last, &mut splice)?;
            return Ok(Some(splice.finish(body)));
        }
        let [last] = json::attributes_of(body, ["LastEvaluatedKey"])?;
        if last.is_none_or(|last| last == b"null") {
            return Ok(None);
        }
        logical_page(table, body, &mut splice)?;
        Ok(Some(splice.finish(body)))
    }

    /// The keys of the items, found by their text: they are all the same. `None` where they are not
    /// found once for each item, so that other attributes may have the same text.
    fn own_keys<'a>(&self, items: &'a [u8], count: &[u8]) -> Option<OwnKeys<'a>> {
        let table = &self.wanted.gathering.shape.table;
        let Logical::Fixed(logical) = &self.wanted.gathering.shape.logical else { return None };
        if table.key_layouts().any_changes() {
            return None;
        }
        let mut text = Vec::new();
        write_string(&mut text, &table.key.partition.name);
        text.push(b':');
        let before = text.len();
        self.merged.streams.first()?.partition.write(&mut text);
        let found = memmem::find_iter(items, &text);
        let key = |at: usize| items.get(at + before..at + text.len());
        let physical: Vec<&[u8]> = found.filter_map(key).collect();
        let is_all = physical.len().to_string().as_bytes() == count;
        is_all.then(|| OwnKeys { physical, logical: logical.clone() })
    }
}

/// A page with a cursor behind its items, of which only what stands around the items was read. They
/// are most of it, and may be a megabyte.
#[derive(Debug, PartialEq, Eq)]
struct Outline<'a> {
    /// All that stands between the begin of the items and the cursor.
    items: &'a [u8],
    /// The cursor.
    last: &'a [u8],
    /// The number of the items.
    count: &'a [u8],
}

impl<'a> Outline<'a> {
    /// `None` where the members stand in another order, or there is no cursor. That a name stands
    /// where members of the answer do, and not within an item, is certain: what is before it, or
    /// behind it, is a whole object with it. No string of JSON has an unescaped quotation mark.
    fn of(body: &'a [u8]) -> Option<Self> {
        let items = memmem::find(body, b"\"Items\":[")?;
        let last = memmem::rfind(body, b"\"LastEvaluatedKey\":{")?;
        let before = [body.get(..items)?, b"\"Items\":0}"].concat();
        let behind = [b"{", body.get(last..)?].concat();
        let ([count_before], [count_behind, cursor]) = (
            json::attributes_of(&before, ["Count"]).ok()?,
            json::attributes_of(&behind, ["Count", "LastEvaluatedKey"]).ok()?,
        );
        // The one as the other stands in the body.
        let place = |whole: &[u8], part: &[u8]| part.as_ptr() as usize - whole.as_ptr() as usize;
        let count = match (count_before, count_behind) {
            (Some(count), None) => body.get(place(&before, count)..)?.get(..count.len())?,
            (None, Some(count)) => body.get(last + place(&behind, count) - 1..)?.get(..count.len())?,
            _ => return None,
        };
        let cursor = cursor?;
        let cursor = body.get(last + place(&behind, cursor) - 1..)?.get(..cursor.len())?;
        Some(Outline { items: body.get(items..last)?, last: cursor, count })
    }
}

/// The keys of a page's items, raw, and the one that takes the place of each.
struct OwnKeys<'a> {
    physical: Vec<&'a [u8]>,
    logical: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> Option<(&str, &str, &str)> {
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        Outline::of(body.as_bytes()).map(|found| (text(found.items), text(found.last), text(found.count)))
    }

    #[test]
    fn what_stands_around_the_items_is_found_in_either_order() {
        let items = r#""Items":[{"pk":{"S":"a"}}],"#;
        let last = r#"{"pk":{"S":"a"}}"#;
        let found = Some((items, last, "1"));
        for body in [
            format!(r#"{{"Count":1,{items}"LastEvaluatedKey":{last},"ScannedCount":1}}"#),
            format!(r#"{{ "ScannedCount" : 1, {items}"LastEvaluatedKey":{last} , "Count":1 }}"#),
        ] {
            assert_eq!(of(&body), found, "{body}");
        }
    }

    #[test]
    fn what_an_item_holds_is_not_taken_for_the_answers_own() {
        let last = r#""LastEvaluatedKey":{"pk":{"S":"a"}}"#;
        for body in [
            // Within the last item, and in a string of it.
            format!(r#"{{"Count":1,"Items":[{{"m":{{"M":{{{last}}}}}}}],"ScannedCount":1}}"#),
            format!(r#"{{"Count":1,"Items":[{{"m":{{{last}}}}}]}}"#),
            r#"{"Count":1,"Items":[{"m":{"S":"\"LastEvaluatedKey\":{}"}}]}"#.to_owned(),
            // The items behind the cursor, none, and no count.
            format!(r#"{{"Count":1,{last},"Items":[]}}"#),
            r#"{"Count":1,"LastEvaluatedKey":null,"Items":[]}"#.to_owned(),
            format!(r#"{{"Items":[],{last}}}"#),
            "{}".to_owned(),
        ] {
            assert_eq!(of(&body), None, "{body}");
        }
    }
}
