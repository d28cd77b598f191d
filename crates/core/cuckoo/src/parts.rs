//! Of what an index consists: this process' own memory, or that of another, to read.

use std::io;
use std::sync::Arc;

use nuthatch_base::memory::Source;
use nuthatch_base::memory::shared::SharedView;
use nuthatch_base::sync::shim::{AtomicU64, Ordering};
use nuthatch_base::sync::stripes::Stripes;

use super::layout::Geometry;
use nuthatch_store::memory::words::Words;
use nuthatch_store::shared::{Plan, SharedPage};

/// What a reader of an index needs.
pub trait Parts {
    /// True if the geometry is another process' word, and no bucket number that comes from it is trusted.
    const CHECKED: bool;

    /// The slots of all buckets.
    fn words(&self) -> &Words;

    /// The versions of all buckets.
    fn stripes(&self) -> &Stripes;

    /// The packed [`Geometry`].
    fn geometry(&self) -> &AtomicU64;
}

/// An index of this process.
pub struct Own {
    words: Words,
    stripes: Stripes,
    geometry: AtomicU64,
    /// For processes that read the index.
    told: Option<Arc<SharedPage>>,
}

impl Own {
    /// Room for so many words, of which `used` are used at first, with memory from `source`; the geometry is told on
    /// this page as well.
    pub fn reserve(
        words: usize,
        used: usize,
        stripes: usize,
        source: &Source,
        told: Option<Arc<SharedPage>>,
    ) -> io::Result<Self> {
        let stripes = Stripes::new_in(source, stripes)?;
        let words = Words::reserve_to_grow_in(source, words)?;
        words.expect(used);
        Ok(Self {
            words,
            stripes,
            geometry: AtomicU64::new(0),
            told,
        })
    }

    /// Changes the geometry.
    pub fn publish(&self, geometry: Geometry) {
        // Release: pairs with the stripe's Acquire as said at `Index::geometry`; alone it orders nothing.
        self.geometry.store(geometry.pack(), Ordering::Release);
        if let Some(page) = &self.told {
            page.geometry.store(geometry.pack(), Ordering::Release);
        }
    }
}

impl Parts for Own {
    const CHECKED: bool = false;

    #[inline(always)]
    fn words(&self) -> &Words {
        &self.words
    }

    #[inline(always)]
    fn stripes(&self) -> &Stripes {
        &self.stripes
    }

    #[inline(always)]
    fn geometry(&self) -> &AtomicU64 {
        &self.geometry
    }
}

/// An index of another process.
pub struct Viewed {
    words: Words,
    stripes: Stripes,
    page: Arc<SharedPage>,
}

impl Viewed {
    /// The parts that lie where `plan` says. `None` if they are not mapped there.
    pub fn view(of: &Arc<SharedView>, page: Arc<SharedPage>, plan: &Plan) -> Option<Self> {
        let count = usize::try_from(plan.stripe_count).ok()?;
        Some(Self {
            words: Words::view(of, plan.index)?,
            stripes: Stripes::view(of, plan.stripes, count)?,
            page,
        })
    }
}

impl Parts for Viewed {
    const CHECKED: bool = true;

    #[inline(always)]
    fn words(&self) -> &Words {
        &self.words
    }

    #[inline(always)]
    fn stripes(&self) -> &Stripes {
        &self.stripes
    }

    #[inline(always)]
    fn geometry(&self) -> &AtomicU64 {
        &self.page.geometry
    }
}
